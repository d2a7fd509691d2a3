// Package harness starts mayfly and the programs that use it, for tests under test/.
//
// A package of tests begins with [Main], which builds mayfly once. [Start] starts a server, [StartCluster] a
// cluster. Both end what they have started and show its log if the test fails. Tests run in the root of the
// module.
//
// Nothing here sleeps for a fixed time: what waits for another process polls until [Patience] has passed, and
// says what it saw last.
package harness
