// Package items holds what commands of several families do with items.
//
// Targets and edits of documents, keys of the selected container, logs of deaths, options.
package items
