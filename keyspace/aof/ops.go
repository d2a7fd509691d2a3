package aof

// LastSets returns the sets among changes that are the last change of their key. It uses their memory.
func LastSets(ops []Op) []Op {
	last := make(map[string]int, len(ops))
	for n, o := range ops {
		last[o.Key] = n
	}
	sets := ops[:0]
	for n, o := range ops {
		if last[o.Key] == n && !o.Del {
			sets = append(sets, o)
		}
	}
	return sets
}
