// Package users has the commands on users and their rights: ACL.
//
// Package access keeps the users and judges; the engine asks it before a command runs. Here are the texts of
// Redis 7.0, and what a change of users does to open connections.
package users
