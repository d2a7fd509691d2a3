package jsonpath

import (
	"strings"
	"sync"
)

// The cache holds paths that are at most maxCachedPath bytes long and whose patterns have at most
// maxCachedSteps. When it is full it is emptied.
const (
	maxCached      = 1 << 10
	maxCachedPath  = 256
	maxCachedSteps = 128
)

var cache struct {
	mu    sync.RWMutex
	paths map[string]*Path
}

// Cached is Parse, which it calls once for a path that is used often. It keeps no reference to text.
func Cached(text string) (*Path, error) {
	cache.mu.RLock()
	p := cache.paths[text]
	cache.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	p, err := Parse(text)
	if err != nil || len(text) > maxCachedPath || p.large {
		return p, err
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.paths == nil || len(cache.paths) >= maxCached {
		cache.paths = make(map[string]*Path, maxCached)
	}
	cache.paths[strings.Clone(text)] = p
	return p, nil
}
