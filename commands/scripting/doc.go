// Package scripting runs the commands on scripts: EVAL and SCRIPT.
//
// A script is a transaction of package engine; the interpreter is in package scripts.
package scripting
