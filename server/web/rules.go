package web

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/engine"
)

const (
	maxWords = 1 << 10 // of a command
	maxCount = 1000    // of an option COUNT
)

// connectionCommands change their connection or hold it. Each command of the page has a connection of its
// own, so they would change nothing, or leave the page without an answer.
var connectionCommands = map[string]string{ // by full name: what to do instead
	"auth": "log in with POST /login", "hello": "log in with POST /login", "select": "name the container with ?container=",
	"quit": "", "reset": "", "readonly": "", "readwrite": "", "asking": "",
	"multi": "", "exec": "", "discard": "", "watch": "", "unwatch": "",
	"monitor": "", "client|reply": "", "client|no-evict": "", "client|no-touch": "", "client|setname": "", "client|setinfo": "",
	"script|debug": "",
}

// harmless are commands without the flag of readers that change nothing.
var harmless = []string{"ping", "echo", "info", "time", "role", "lastsave", "command", "cluster|info", "cluster|status"}

// check returns the error of a command that the page does not run. It begins with a code, as those of the
// server do.
func (s *Server) check(words []string) error {
	if words[0] == "" {
		return errors.New("ERR the first word must be the name of a command") // the client library would send nothing
	}
	c, name := engine.Lookup(words)
	if c == nil {
		return nil // the server knows the error
	}
	instead, ofConnection := connectionCommands[name]
	switch {
	case ofConnection || c.Flags&engine.Waits != 0 || c.Flags&engine.PubSub != 0 && c.Flags&engine.NoScript != 0:
		if instead == "" {
			instead = "use redis-cli"
		}
		return fmt.Errorf("ERR %s is of no use on the page, where each command has its own connection: %s", strings.ToUpper(strings.ReplaceAll(name, "|", " ")), instead)
	case c.Flags&engine.Blocking != 0 && c.KeysAfter.Word == "":
		return fmt.Errorf("ERR %s waits: the page runs what does not", strings.ToUpper(name))
	case c.Flags&engine.Blocking != 0 && blocks(c, words):
		return fmt.Errorf("ERR %s with BLOCK waits: the page runs it without", strings.ToUpper(name))
	case s.options.ReadOnly && !reads(c, name):
		return errors.New("READONLY the page is read-only: see web-readonly")
	}
	return checkCount(c.Syntax, words)
}

// blocks reports whether XREAD or XREADGROUP wait. Words before their options are names, of a group for
// example.
func blocks(c *engine.Command, words []string) bool {
	for _, word := range words[min(c.KeysAfter.From, len(words)):] {
		if strings.EqualFold(word, "STREAMS") {
			return false
		}
		if strings.EqualFold(word, "BLOCK") {
			return true
		}
	}
	return false
}

// reads reports whether a command changes neither data nor settings, and sends nothing to other clients.
func reads(c *engine.Command, name string) bool {
	const changes = engine.Write | engine.MayWrite | engine.Admin | engine.Publishes
	return c.Flags&changes == 0 && (c.Flags&engine.ReadOnly != 0 || slices.Contains(harmless, name))
}

// checkCount returns an error if a command asks for too much at a time. Options follow the arguments that the
// syntax demands.
func checkCount(syntax string, words []string) error {
	demanded, options, _ := strings.Cut(syntax, "[")
	if !strings.Contains(options, "COUNT count") {
		return nil
	}
	for i := 1 + len(strings.Fields(demanded)); i+1 < len(words); i++ {
		if n, err := strconv.ParseInt(words[i+1], 10, 64); strings.EqualFold(words[i], "COUNT") && err == nil && n > maxCount {
			return fmt.Errorf("ERR COUNT %d: the page may ask for up to %d", n, maxCount)
		}
	}
	return nil
}
