// Package drill says how much a test does, repeats its chance, and waits for what a test waits for.
//
// Tests have three speeds: quick (go test -short), all (go test) and drills (go test -drill), which make a
// release. docs/testing.md says what each drill proves.
package drill
