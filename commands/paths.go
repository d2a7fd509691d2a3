package commands

import (
	"fmt"
	"strconv"
	"strings"
)

// mostPaths is how many paths DOC.GET takes, which bounds the memory for them.
const mostPaths = 100

func parsePaths(args []string) ([]pointer, error) {
	if len(args) > mostPaths {
		return nil, fmt.Errorf("%d paths: legal are 1 to %d", len(args), mostPaths)
	}
	paths := make([]pointer, len(args))
	for i, arg := range args {
		var err error
		if paths[i], err = parsePointer(arg); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// selectPaths is what DOC.GET replies of a valid object: all of it if there are no paths, the value at
// the one path, null if there is none, or an array of those at several paths.
func selectPaths(object string, paths []pointer) Reply {
	switch len(paths) {
	case 0:
		return Bulk(object)
	case 1:
		if at, err := paths[0].find(object); err == nil && at.found {
			return Bulk(object[at.from:at.to])
		}
		return Null
	}
	var root pathNode
	ends := make([]*pathNode, len(paths))
	for i, path := range paths {
		ends[i] = root.grow(path)
	}
	root.search(object, strings.IndexByte(object, '{'))
	values := make([]Reply, len(paths))
	for i, end := range ends {
		values[i] = end.value(object)
	}
	return Array(values...)
}

// pathNode is what several paths have in common: a tree of their tokens, in which one pass over a
// document leaves what it finds, be they few or many.
type pathNode struct {
	above    *pathNode // nil for the root
	children map[string]*pathNode

	times    int // how often it was found
	from, to int // where, the last time
}

// grow adds a path and gives the node at its end.
func (n *pathNode) grow(path pointer) *pathNode {
	// Nothing in a document is deeper: what such a path leads to is as absent as this node.
	for depth := 0; path != "" && depth <= maxNesting; depth++ {
		var token string
		token, path = path.cut()
		child := n.children[token]
		if child == nil {
			child = &pathNode{above: n}
			if n.children == nil {
				n.children = map[string]*pathNode{}
			}
			n.children[token] = child
		}
		n = child
	}
	return n
}

// search finds the node in the value that begins at i, and all below it in what that holds. It gives the
// end of the value.
func (n *pathNode) search(text string, i int) (end int) {
	n.times++
	n.from = i
	if n.children == nil || text[i] != '{' && text[i] != '[' {
		n.to = valueEnd(text, i)
		return n.to
	}
	w := walkAt(text, i)
	for index := 0; w.enter(); index++ {
		var child *pathNode
		if w.array {
			child = n.children[strconv.Itoa(index)]
		} else {
			child = n.children[w.name()]
		}
		if child != nil {
			w.pos = child.search(text, w.valueFrom)
		} else {
			w.pos = valueEnd(text, w.valueFrom)
		}
	}
	n.to = w.start + 1
	return n.to
}

// value is what was found at the node, null if nothing or, as in [pointer.find], if a name on the way is
// there more than once.
func (n *pathNode) value(text string) Reply {
	for on := n; on != nil; on = on.above {
		if on.times != 1 {
			return Null
		}
	}
	return Bulk(text[n.from:n.to])
}
