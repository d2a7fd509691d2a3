// Package dbnum chooses the numbers by which SELECT opens containers.
//
// Every container has a number, beside its name. It is not the number in its keys, which changes with every flush and
// swap.
//
//   - The databases 0 to 15 have their own.
//   - A container whose name is a number has that number, so SELECT 2025 means one container only.
//   - Any other gets the one after that given last, or the one that its creator names. A free number is given again
//     only when all up to [Max] were given: a client that still holds it must not meet another container.
//
// A number stays while the container exists: over flushes, swaps, restarts, backups and repairs.
package dbnum
