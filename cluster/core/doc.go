// Package core drives raft for one node: elections, proposals, sessions, members and leases,
// deterministically.
//
// Core has no goroutines, no I/O and no clock. The driver calls it from one goroutine, passes messages and
// monotonic times in, and does what Ready asks for: send, save, apply. The same calls give the same results,
// so the simulation in the tests replays a schedule of faults from a seed.
//
// # Saving
//
// Raft goes on while its log is written (its asynchronous storage writes): a slow disk delays neither ticks
// nor heartbeats nor the answers to them, so it deposes no leader. What a node acknowledges, to others or to
// itself, waits for the disk: Ready gives these messages with the Save. An entry is applied once it is
// committed and on this node's own disk.
//
// # Sessions
//
// A session is the term of a leader. The first entry that a leader proposes is the begin of its session. The
// session is open once this node has applied its begin: then it has applied the whole log before it, and its
// memory may run ahead of the log. A batch names the session in which memory was changed. Propose refuses
// another session than the open one, and every node takes a batch for void whose session is not the last that
// has begun. Either check is enough: entries of a term do not follow those of a later term. A leader whose
// memory is ahead of the log when another session begins loads it anew.
//
// # Leases
//
// With each tick the leader asks all nodes whether they still follow, by raft's read index. When a majority
// has answered the question of time s on the leader's clock, the lease lasts until s + 0.9 T; T is the
// election timeout. Until then no other node opens a later session or has a lease, if clocks differ in rate
// by less than a tenth. A leader that was deposed while it applied its begin may open an earlier session
// late: no majority answers it, so it commits nothing and confirms no read. The argument:
//
// Every voter promises, when it hears a leader of its term or a later one, to help no node to an election for
// T on its own clock. It drops requests for votes, and as a candidate the answers to its own. Each node of
// the majority has heard the leader after s, so its promise lasts beyond s + T on its clock, which is beyond
// s + 0.9 T on the leader's. A new leader needs votes of a majority, and two majorities share a node. Raft
// has such a rule, but counts ticks: ten ticks may be nine intervals long, and less if some ticks are late.
// So core measures time. That rule also needs these four:
//
//   - A restart forgets the promise. So a node promises at its start too, unless its id is new.
//   - A transfer overrides the promise, by a mark on the requests for votes. So Transfer ends the lease
//     first. The order to depose the leader may arrive at any time later; once it was sent, the term has no
//     lease any more and reads ask the majority.
//   - A change of the members changes majorities. So it ends the lease; the majorities of two configurations
//     with one change between them share a node, and the leader makes the next change only after it has
//     applied the one before.
//   - A read that waits may be confirmed in a later session, when another leader has changed what it has
//     read. So the driver confirms a read only in the session in which it was made.
//
// A leader that has lost its majority steps down within two election timeouts (check quorum). A candidate
// asks before it raises the term (pre-vote), so a node that comes back does not depose a leader.
//
// # Members
//
// The log has what the members are to be (entry.Change); the leader, whichever it is, brings raft's
// configuration there one id at a time. A node that has lost its disk comes with a new id under its name: the
// old id leaves, the new one learns and then votes. A leader that leaves transfers first, because one that
// removes itself may take the news of its removal along.
package core
