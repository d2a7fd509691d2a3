package tools

// A database of an export is an ordinary buntdb file. An item is under the key "container/id": the
// JSON of a document, the bytes of a plain key. No name of a container holds a slash, so that the id is
// all that follows the first one. Keys that begin with a slash describe the items:
//
//	/mayfly/container/<name>     the line of the container (line.go)
//	/mayfly/items/<name>/<part>  an array with the lines of at most itemsPerPart items, without the bodies:
//	                             a document's has no doc, a plain key's an empty value
//	/mayfly/format               {"version":1,"complete":true}; complete is false until the export ends
//
// An end that is a moment is buntdb's TTL, too, rounded up to its whole seconds. An item whose end
// depends on its container's default has none, and neither has one in a container that is off.

const (
	ownPrefix       = "/mayfly/"
	formatKey       = ownPrefix + "format"
	containerPrefix = ownPrefix + "container/"
	itemsPrefix     = ownPrefix + "items/"

	itemsPerPart = 1000

	incompleteFormat = `{"version":1,"complete":false}`
	completeFormat   = `{"version":1,"complete":true}`
)

// itemKey returns the key of an item.
func itemKey(container, id string) string { return container + "/" + id }
