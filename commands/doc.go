// Package commands puts the table of commands together from all families.
//
// Importing it fills the table of package engine, which executes commands and knows no family. A family is a
// package of its own. It knows the engine, and package items for what families share, but no other family.
package commands
