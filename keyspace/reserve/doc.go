// Package reserve holds room on a disk for what a server must still write when the disk is full.
//
//  1. The write that meets the full disk releases the reserve and is repeated.
//  2. From then on only writes that free space are admitted, up to a share of the reserve. The rest is for checkpoints and
//     compactions, which give the room of deleted items back.
//  3. Once the disk has room for the reserve and some more, the reserve is filled, and everything is admitted again.
//
// The journal stays much smaller than the reserve, so that a checkpoint fits into it. A start that cannot fill the reserve
// begins in this state. If it cannot even begin a journal, nothing is written until there is room, and reads work.
package reserve
