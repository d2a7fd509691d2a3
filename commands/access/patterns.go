package access

import (
	"slices"
	"strings"

	"mayfly/redisfmt"
)

// Permission is what a pattern allows with a key, and what a command needs.
type Permission uint8

// Read and Write are the permissions of a key. A command that needs neither, such as EXISTS, needs any.
const (
	Read Permission = 1 << iota
	Write
	ReadWrite = Read | Write
)

// keyPattern is a pattern of keys.
type keyPattern struct {
	text    string
	permits Permission
}

func (p keyPattern) String() string {
	switch p.permits {
	case Read:
		return "%R~" + p.text
	case Write:
		return "%W~" + p.text
	}
	return "~" + p.text
}

// matcher matches texts with patterns: exact texts first, then prefixes (p*), then all other patterns one by
// one.
type matcher struct {
	exact    map[string]struct{}
	prefixes []string // ascending; none is a prefix of another
	globs    []*redisfmt.Pattern
}

// special are the bytes that make a pattern more than a text.
const special = `*?[\`

func newMatcher(patterns []string) *matcher {
	m := &matcher{exact: map[string]struct{}{}}
	for _, p := range patterns {
		prefix, star := strings.CutSuffix(p, "*")
		switch {
		case strings.ContainsAny(prefix, special):
			m.globs = append(m.globs, redisfmt.Compile(p))
		case star && prefix == "": // a pattern of its own: the empty text does not match it, as in Redis
			m.globs = append(m.globs, redisfmt.Compile(p))
		case star:
			m.prefixes = append(m.prefixes, prefix)
		default:
			m.exact[p] = struct{}{}
		}
	}
	slices.Sort(m.prefixes)
	kept := m.prefixes[:0]
	for _, p := range m.prefixes {
		if len(kept) == 0 || !strings.HasPrefix(p, kept[len(kept)-1]) {
			kept = append(kept, p)
		}
	}
	m.prefixes = kept
	return m
}

func (m *matcher) match(text string) bool {
	if m == nil {
		return false
	}
	if len(m.exact) > 0 {
		if _, ok := m.exact[text]; ok {
			return true
		}
	}
	if len(m.prefixes) > 0 {
		// The last one up to the text is the only one that can be its prefix.
		low, high := 0, len(m.prefixes)
		for low < high {
			if middle := (low + high) / 2; m.prefixes[middle] <= text {
				low = middle + 1
			} else {
				high = middle
			}
		}
		if low > 0 && strings.HasPrefix(text, m.prefixes[low-1]) {
			return true
		}
	}
	for _, g := range m.globs {
		if g.Match(text) {
			return true
		}
	}
	return false
}

// keyMatchers match keys for each permission that a command may need. Equal ones are shared.
type keyMatchers [ReadWrite + 1]*matcher

func newKeyMatchers(patterns []keyPattern) (ms keyMatchers) {
	var of [len(ms)][]string
	for _, p := range patterns {
		for need := range ms {
			if p.permits&Permission(need) == Permission(need) {
				of[need] = append(of[need], p.text)
			}
		}
	}
	for need := range ms {
		switch {
		case need > 0 && len(of[need]) == len(patterns):
			ms[need] = ms[0]
		case len(of[need]) > 0:
			ms[need] = newMatcher(of[need])
		}
	}
	return ms
}
