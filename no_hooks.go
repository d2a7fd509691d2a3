//go:build !hooks

package main

import "mayfly/keyspace"

// hooked returns the options as they are: only builds with hooks for tests have another clock.
func hooked(o keyspace.Options) keyspace.Options { return o }
