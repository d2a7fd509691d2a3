package access

import (
	"slices"
	"strings"
	"sync"

	"mayfly/redisfmt"
)

// Command is a command or subcommand as rules name it.
type Command struct {
	Name       string   // in lower case: "get", "config|get"
	Parent     int      // the number of the command that it is a subcommand of; -1: it is none
	Categories []string // without @
}

// Catalogue holds the commands and categories that rules may name. A command's number is its index. It never
// changes. Safe for concurrent use.
type Catalogue struct {
	commands   []Command
	byName     map[string]int
	children   map[int][]int
	categories map[string][]int // the numbers of the commands of each
	order      []string         // of the categories

	mu      sync.Mutex
	bitmaps map[string]*bitmap // by the text of the rules, so that equal lists share one
}

// NewCatalogue returns a catalogue. A category may be without commands.
func NewCatalogue(commands []Command, categories []string) *Catalogue {
	c := &Catalogue{
		commands: commands, byName: map[string]int{}, children: map[int][]int{},
		categories: map[string][]int{}, order: categories, bitmaps: map[string]*bitmap{},
	}
	for _, name := range categories {
		c.categories[name] = nil
	}
	for n, cmd := range commands {
		c.byName[cmd.Name] = n
		if cmd.Parent >= 0 {
			c.children[cmd.Parent] = append(c.children[cmd.Parent], n)
		}
		for _, name := range cmd.Categories {
			c.categories[name] = append(c.categories[name], n)
		}
	}
	return c
}

// Categories returns the names of the categories, in the order of NewCatalogue. The list must not be
// modified.
func (c *Catalogue) Categories() []string { return c.order }

// Members returns the names of the commands of a category; false if there is none.
func (c *Catalogue) Members(category string) (names []string, ok bool) {
	numbers, ok := c.categories[lower(category)]
	for _, n := range numbers {
		names = append(names, c.commands[n].Name)
	}
	return names, ok
}

// bitmap is the commands that a list of rules allows.
type bitmap struct {
	bits []uint64
	all  bool
	// firstArgs are the first arguments with which a command is allowed whose bit is not set.
	firstArgs map[int][]string
}

func (b *bitmap) has(n int) bool { return b.bits[n>>6]&(1<<(n&63)) != 0 }

func (b *bitmap) set(n int, allow bool) {
	if allow {
		b.bits[n>>6] |= 1 << (n & 63)
	} else {
		b.bits[n>>6] &^= 1 << (n & 63)
	}
	delete(b.firstArgs, n)
}

// allows reports whether a call of a command is allowed.
func (b *bitmap) allows(n int, args []string) bool {
	if b.all || b.has(n) {
		return true
	}
	first := b.firstArgs[n]
	return len(first) > 0 && len(args) > 1 &&
		slices.ContainsFunc(first, func(word string) bool { return redisfmt.EqualFold(word, args[1]) })
}

// mostBitmaps bounds the memory for bitmaps that no user has any more.
const mostBitmaps = 1 << 10

// compile returns the bitmap of a list of rules.
func (c *Catalogue) compile(everything bool, rules []commandRule) *bitmap {
	text := commandText(everything, rules)
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.bitmaps[text]; b != nil {
		return b
	}
	b := &bitmap{bits: make([]uint64, (len(c.commands)+63)/64), firstArgs: map[int][]string{}}
	if everything {
		for n := range c.commands {
			b.set(n, true)
		}
	}
	for _, r := range rules {
		c.apply(b, r)
	}
	b.all = true
	for n := range c.commands {
		b.all = b.all && b.has(n)
	}
	if len(c.bitmaps) >= mostBitmaps {
		clear(c.bitmaps)
	}
	c.bitmaps[strings.Clone(text)] = b
	return b
}

// apply changes a bitmap as a rule says.
func (c *Catalogue) apply(b *bitmap, r commandRule) {
	if category, ok := strings.CutPrefix(r.name, "@"); ok {
		for _, n := range c.categories[category] {
			c.set(b, n, r.allow)
		}
		return
	}
	if n, ok := c.byName[r.name]; ok {
		c.set(b, n, r.allow)
		return
	}
	name, word, _ := strings.Cut(r.name, "|")
	if n := c.byName[name]; !slices.Contains(b.firstArgs[n], word) {
		b.firstArgs[n] = append(b.firstArgs[n], word)
	}
}

// set allows or denies a command with its subcommands.
func (c *Catalogue) set(b *bitmap, n int, allow bool) {
	b.set(n, allow)
	for _, child := range c.children[n] {
		b.set(child, allow)
	}
}
