// Package jsontext iterates over the text of valid JSON without decoding it. It is the one reader under
// documents, queries and indexes. Functions may panic on other text. All are safe for concurrent use.
package jsontext
