package access

import "strings"

// commandText shows a list of command rules.
func commandText(everything bool, rules []commandRule) string {
	words := make([]string, 1, 1+len(rules))
	words[0] = "-@all"
	if everything {
		words[0] = "+@all"
	}
	for _, r := range rules {
		words = append(words, r.String())
	}
	return strings.Join(words, " ")
}

// Description is a set of rights as ACL GETUSER shows it.
type Description struct{ Commands, Keys, Channels, Databases string }

// Describe describes the set.
func (s *Set) Describe() (d Description) {
	d.Commands = commandText(s.everything, s.commands)
	if d.Keys = "~*"; !s.allKeys {
		d.Keys = joined(s.keys, keyPattern.String)
	}
	if d.Channels = "&*"; !s.allChannels {
		d.Channels = joined(s.channels, func(c string) string { return "&" + c })
	}
	if d.Databases = "alldbs"; !s.allWalls {
		d.Databases = strings.Join(s.containers, ",")
	}
	return d
}

func joined[T any](list []T, text func(T) string) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = text(e)
	}
	return strings.Join(words, " ")
}

// line shows the set as the rules that make it.
func (s *Set) line() string {
	d := s.Describe()
	var words []string
	add := func(word string) {
		if word != "" {
			words = append(words, word)
		}
	}
	add(d.Keys)
	if !s.allChannels {
		add("resetchannels")
	}
	add(d.Channels)
	switch {
	case s.allWalls:
	case len(s.containers) == 0:
		add("resetdbs")
	default:
		add("db=" + d.Databases)
	}
	add(d.Commands)
	return strings.Join(words, " ")
}

// Line returns the user as ACL LIST and the files of users show it.
func (u *User) Line() string {
	words := append([]string{"user", u.Name}, u.Flags()...)
	for _, hash := range u.hashes {
		words = append(words, "#"+hash)
	}
	for i, s := range u.sets {
		line := s.line()
		if i > 0 {
			line = "(" + line + ")"
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

// Flags are the words of the user that ACL GETUSER shows as flags.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.on {
		flags[0] = "on"
	}
	if u.noPass {
		flags = append(flags, "nopass")
	}
	return flags
}

// Hashes returns the hashes of the user's passwords. The list must not be modified.
func (u *User) Hashes() []string { return u.hashes }

// Sets returns the user's sets of rights, the root first. The list must not be modified.
func (u *User) Sets() []*Set { return u.sets }

// On reports whether the user may authenticate.
func (u *User) On() bool { return u.on }

// NoPass reports whether any password is right.
func (u *User) NoPass() bool { return u.noPass }
