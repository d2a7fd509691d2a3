package jsondoc

import (
	"strconv"

	"mayfly/json/jsontext"
)

// Values returns the JSON text at each pointer in a valid document. A text is "" if there is no value, or
// if a name on the way is repeated. Values makes one pass over the document. The texts share memory with
// it.
func Values(object string, pointers []Pointer) []string {
	values := make([]string, len(pointers))
	if len(pointers) == 1 { // needs no tree: see BenchmarkValues
		if at, err := pointers[0].find(object); err == nil && at.found {
			values[0] = object[at.from:at.to]
		}
		return values
	}
	var root pathNode
	ends := make([]*pathNode, len(pointers))
	for i, p := range pointers {
		ends[i] = root.addPath(p)
	}
	root.locate(object, jsontext.Skip(object, 0, ' '))
	for i, end := range ends {
		values[i] = end.result(object)
	}
	return values
}

// pathNode is a node of the tree of several pointers' tokens. One pass over a document notes in the tree
// where each token leads.
type pathNode struct {
	parent   *pathNode // nil for the root
	children map[string]*pathNode

	times    int // how often the node's value was found
	from, to int // its position, the last time
}

// addPath adds a pointer and returns the node at its end.
func (n *pathNode) addPath(path Pointer) *pathNode {
	// No document is deeper: the value of a longer path is as absent as that of its first tokens.
	for depth := 0; path != "" && depth <= MaxNesting; depth++ {
		var token string
		token, path = path.cutToken()
		child := n.children[token]
		if child == nil {
			child = &pathNode{parent: n}
			if n.children == nil {
				n.children = map[string]*pathNode{}
			}
			n.children[token] = child
		}
		n = child
	}
	return n
}

// locate notes that the value at i is the node's, and locates the nodes below in it. It returns the end
// of the value.
func (n *pathNode) locate(text string, i int) (end int) {
	n.times++
	n.from = i
	if n.children == nil || text[i] != '{' && text[i] != '[' {
		n.to = jsontext.ValueEnd(text, i)
		return n.to
	}
	w := jsontext.WalkAt(text, i)
	for index := 0; w.Step(); index++ {
		var child *pathNode
		if w.Array {
			child = n.children[strconv.Itoa(index)]
		} else {
			child = n.children[w.Name()]
		}
		if child != nil {
			w.Pos = child.locate(text, w.ValueFrom)
		} else {
			w.Pos = jsontext.ValueEnd(text, w.ValueFrom)
		}
	}
	n.to = w.Start + 1
	return n.to
}

// result returns the value found at the node; "" if there is none or a name on the way is repeated.
func (n *pathNode) result(text string) string {
	for node := n; node != nil; node = node.parent {
		if node.times != 1 {
			return ""
		}
	}
	return text[n.from:n.to]
}
