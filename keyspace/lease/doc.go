// Package lease keeps time from running backwards across a restart (rule 8).
//
// A start knows only what is on disk, and the wall clock may have been set back meanwhile. So the clock is
// leased ahead of its use: no reply reveals a later time than the committed record of the clock.
//
//  1. A transaction that begins after the lease extends it by [Time], and appends the record to the journal.
//  2. It and all that follow wait for the record before they reply, as for anything else they have seen. So
//     there is at most one record per [Time], and none while no command runs.
//  3. A checkpoint writes the record to the catalogue before it removes the journals with it.
//  4. A start does not begin before the leased time. After a kill it waits for that, for [Time] at most; if
//     that is not enough the wall clock was set back, and ours is set to the leased time. A clean stop ends
//     the lease.
//
// While writes are refused the lease cannot be extended, and reads continue without it.
package lease
