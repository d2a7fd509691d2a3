package commands

import "testing"

// TestMaxContainers: at the limit no container is made, and those that exist can be changed and dropped.
func TestMaxContainers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.CREATE", "a")
	w.engine.Keyspace().SetMaxContainers(1)
	const full = "(error) ERR cannot create container 'b': max-containers allows 1; drop some or raise it"
	w.expect(full, "CONTAINER.CREATE", "b")
	w.expect(full, "CONTAINER.SET", "b", "TTL", "10")
	w.expect("(error) ERR container 'a' exists already; change it with CONTAINER.SET", "CONTAINER.CREATE", "a")
	w.expect("OK", "CONTAINER.SET", "a", "TTL", "10")
	w.expect("(integer) 1", "CONTAINER.DROP", "a")
	w.expect("OK", "CONTAINER.CREATE", "b")
}
