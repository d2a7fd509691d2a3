// Package foresight counts the items of a container by what becomes of them.
//
//   - An [Effect] says what a new default would do if it were set now: CONTAINER.PLAN.
//   - A [Forecast] says how much dies when: CONTAINER.FORECAST.
//   - A [Walk] passes the entries of tables to one of them in pieces.
//
// Everything is judged at one frozen moment, and each container by one policy. So an item that is neither
// written nor removed during a walk counts exactly once.
//
// It has no locks. The caller locks the partition of a table for each piece.
package foresight
