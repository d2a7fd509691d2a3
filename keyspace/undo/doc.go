// Package undo decides which changes of containers can be taken back, until when, and what ends before.
//
// A change of a rule, a flush and a drop can be taken back until the end of a window, the newest of a name
// first.
//
//  1. The windows of rules are in the history of their container: see [expiry.Windows]. The former policies
//     are its retention, so what they would let live stays in memory.
//  2. A flush or a drop sets the container aside, with its items, policy and history. [Asides] lists it.
//  3. A window ends no later than those of newer changes: what cannot be taken back keeps older changes from
//     being so.
//  4. Before a change is written, [Stack.Open] limits the windows before it, and ends the oldest if there are
//     too many.
//  5. A [Horizon] says how long the window of a new change is, and after which moment none is open.
//
// A [Stack] is a copy of what a name has. It decides, and marks the layers that have changed. The caller, who
// holds the locks, makes the containers follow.
package undo
