// Package lists has the commands on lists: LPUSH and its family, with those that wait.
package lists
