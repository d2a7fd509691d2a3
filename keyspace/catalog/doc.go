// Package catalog lists the containers of a keyspace: by name, by number, and by what the files lack of them.
//
// A container is listed, set aside (package undo) or hidden, as a log of deaths or a group of consumers is. Each has a
// number, the prefix of its keys, which is never used again. What a [Catalog] needs of containers besides comes as
// [Accessors].
//
// A catalogue is read while any partition of the keyspace is locked, and changed while all are.
package catalog
