// Package drill says how much a test does, and repeats its chance.
//
// Tests have three speeds: quick (go test -short), all (go test) and drills (go test -drill), which make a release.
// docs/testing.md says what each drill proves.
package drill
