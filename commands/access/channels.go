package access

import "strings"

// ContainersOf returns the containers whose events a channel may carry: those that it names in
// __keyspace@name__:key and __keyevent@name__:event. It is one, unless the text has several ends of a name.
func ContainersOf(channel string) (names []string) {
	rest, ok := strings.CutPrefix(channel, "__keyspace@")
	if !ok {
		if rest, ok = strings.CutPrefix(channel, "__keyevent@"); !ok {
			return nil
		}
	}
	const end = "__:"
	for at := 0; ; {
		i := strings.Index(rest[at:], end)
		if i < 0 {
			return names
		}
		at += i
		if name := rest[:at]; name == "" || strings.ContainsAny(name, special) || !isContainerPattern(name) || len(name) > mostName {
			return names
		}
		names = append(names, rest[:at])
		at++
	}
}

// LogName returns the container whose deaths a stream of that name has; false for other names.
func LogName(key string) (container string, ok bool) {
	name, begins := strings.CutPrefix(key, "__keyevent@")
	name, ends := strings.CutSuffix(name, "__:expired")
	if !begins || !ends || name == "" || len(name) > mostName || strings.ContainsAny(name, special) || !isContainerPattern(name) {
		return "", false
	}
	return name, true
}
