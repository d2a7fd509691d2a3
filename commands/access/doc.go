// Package access decides what users may do: it reads rules, keeps the table of users, and judges calls of
// commands.
//
// A [User] has passwords and one or more sets of rights: the root set, and one for each selector. A set says
// which commands, keys, channels and containers are allowed. A call runs if one set allows all of it. Sets do
// not add up.
//
// Rules are those of Redis' ACL SETUSER, and the rule db= of Valkey with names of containers (rules.go). A
// set keeps its command rules as an ordered list, as Redis 7.2 does, and compiles the list into a bitmap. So
// a user gets the new commands of a new version by the categories that the list names.
//
// Users and tables never change. [Users] publishes a new table through one atomic pointer. A session keeps a
// [Holder]: while the table stays, it knows without a look-up whether its user may do everything.
//
// The package knows no engine: a [Call] says what a command touches. It also keeps the log of what was
// refused (log.go), and slows down clients that guess passwords (guesses.go).
package access
