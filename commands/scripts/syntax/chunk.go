package syntax

import "strings"

// ChunkID returns how errors name a chunk, as luaO_chunkid does.
func ChunkID(name string) string {
	const most = 60
	switch {
	case strings.HasPrefix(name, "="):
		return name[1:min(len(name), most)]
	case strings.HasPrefix(name, "@"):
		name = name[1:]
		if limit := most - len(" '...' ") - 1; len(name) > limit {
			return "..." + name[len(name)-limit:]
		}
		return name
	}
	first, _, more := strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
	if limit := most - len(` [string "..."] `) - 1; len(first) > limit || more {
		first = first[:min(len(first), limit)] + "..."
	}
	return `[string "` + first + `"]`
}
