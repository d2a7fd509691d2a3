// Package like matches strings with patterns of LIKE.
package like
