// Package token splits the text of a query into words, literals and punctuation marks.
package token
