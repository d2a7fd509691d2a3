// Package repair reads data folders that no server uses, damaged ones too, and changes nothing in them.
//
// [Inspect] reports the state of a folder. It judges files with the functions of a start, so a folder is
// damaged exactly if a server refuses it. [Read] visits the living items of a sound folder. [Run] copies the
// readable items of a damaged one into a new folder.
//
// Of a damaged file the package reads everything that a checksum proves (salvage.go). Seals prove ranges, and
// the checksums of records prove the sets between them. merge.go merges stores and journals per item.
package repair
