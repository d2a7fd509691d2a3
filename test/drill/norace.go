//go:build !race

package drill

const race = false
