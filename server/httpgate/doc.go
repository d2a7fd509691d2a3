// Package httpgate bounds the connections of mayfly's HTTP servers, and refuses requests under names of other
// machines.
package httpgate
