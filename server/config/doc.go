// Package config holds the server's options: the table of them, what sets them, and how they change while
// the server runs.
//
// [Options] is the table. From the row of an option follow its flag, its environment variable, its line in
// a config file and in --help, and its part in CONFIG GET and CONFIG SET.
//
// [Load] reads the command line, the environment and the config file, the strongest first. A config file
// may be a redis.conf: directives without a meaning here are ignored, and those that promise something
// the server does not do are refused (foreign.go).
//
// A [Config] hands out [Settings], immutable values of all options at one moment. CONFIG SET replaces them
// after the hooks of [Config.OnChange] have agreed. CONFIG REWRITE brings the config file into line
// with them (rewrite.go).
package config
