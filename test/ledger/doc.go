// Package ledger has clients that write and remember what was acknowledged, for tests that kill servers.
//
// Each worker writes keys of its own, so it knows what a server must still have after a crash: every
// acknowledged write, and each other one entirely or not at all.
package ledger
