// Package documents runs the commands on documents, DOC.*.
//
// Their way through locks and time is that of package engine; what they share with other families is in
// package items.
package documents
