//go:build invariants || race

package keyspace

import "fmt"

// Check verifies the invariants of the catalogue and returns the first violation.
func (cat *catalogue) Check() error {
	numbers := make(map[uint32]*Container)
	memory := int64(0)
	for c := range cat.All() {
		number := c.number
		if other, taken := numbers[number]; taken {
			return fmt.Errorf("containers %q and %q share number %d", c.name, other.name, number)
		}
		numbers[number] = c
		if next := cat.Next(); number >= next {
			return fmt.Errorf("container %q has number %d, the next is %d", c.name, number, next)
		}
		memory += c.memory()
	}
	for at, c := range cat.list {
		if !cat.Listed(c) || cat.ByDB[c.db] != c || c.listPos != at {
			return fmt.Errorf("container %q is not listed under its name, its number %d for SELECT and its place", c.name, c.db)
		}
	}
	for number, h := range cat.Hidden {
		if h.number != number {
			return fmt.Errorf("hidden container %d is listed as %d", h.number, number)
		}
	}
	if a, b := len(cat.ByName), len(cat.ByDB); a != len(cat.list) || b != a {
		return fmt.Errorf("%d containers are listed, %d by name, %d by number", len(cat.list), a, b)
	}
	if used := cat.Memory(); memory != used {
		return fmt.Errorf("containers take %d bytes, counted are %d", memory, used)
	}
	return nil
}
