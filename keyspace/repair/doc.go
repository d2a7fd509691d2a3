// Package repair reads data folders that no server uses, damaged ones too, and changes nothing in them.
//
// [Inspect] reports what is sound in a folder. Files are judged by the functions that judge them at a start, so a
// folder is damaged exactly if a server would refuse it. [Read] visits what lives in a sound folder. [Run] copies
// what can be read of a damaged one into a new folder.
//
// Of a damaged file everything is read that a checksum proves (salvage.go): ranges by their seals, and the sets in
// the ranges between them by the checksums of their records. merge.go brings together what stores and journals say
// of each item.
package repair
