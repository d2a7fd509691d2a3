// Package bytecode reads the instructions that gopher-lua compiles, and names the variables they use.
package bytecode
