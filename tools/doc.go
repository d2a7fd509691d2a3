// Package tools works on the data of a server from outside, by commands such as "mayfly check".
//
//	check   reports what is sound in a data folder and what is not (check.go)
//	repair  copies what is sound of a damaged folder to a new one (repair.go)
//	export  writes items as lines of JSON or as a buntdb database (export.go, export_buntdb.go)
//	import  reads them back, also into another number of partitions (import.go, import_buntdb.go)
//	forecast, top  draw what dies when, and how a running server is (forecast.go, top.go)
//	health  asks whether a running server serves, for containers (health.go)
//
// Export and import work on a folder that no server uses (import_folder.go) and on a running server
// (import_server.go). line.go and buntdb.go define the formats.
//
// Package keyspace/repair reads and judges the files of a folder. With a running server the tools speak the
// protocol, as any client does (client.go).
package tools
