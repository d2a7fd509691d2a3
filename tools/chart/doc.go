// Package chart draws a server's figures as lines of text: what dies when, and how the server is.
//
// It is pure: a drawing is a function of figures, a width and a style. No line is wider than the width.
package chart
