package commands

import (
	"strings"

	"mayfly/commands/redisfmt"
)

const killOption = "<[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] |" +
	" [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]>"

// killFilter says which connections CLIENT KILL closes: those that meet all conditions that it has.
type killFilter struct {
	id          int64 // 0 for any
	addr, laddr *string
	kind        func(*Session) bool
	self        bool // also the connection that gives the command
}

// parseClientKill reads both forms of CLIENT KILL. The old one names an address and says whether
// there was such a client, the new one has options and says how many there were.
func parseClientKill(in *Input) (Run, error) {
	if len(in.Args) == 3 {
		f := killFilter{addr: &in.Args[2], self: true}
		return func(x *Context) Reply {
			if f.kill(x) == 0 {
				return Fail(errNoSuchClient)
			}
			return OK
		}, nil
	}
	var f killFilter
	for rest := in.Args[2:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 {
			return nil, errSyntax
		}
		if err := f.option(rest[0], &rest[1]); err != nil {
			return nil, err
		}
	}
	return func(x *Context) Reply { return Count(f.kill(x)) }, nil
}

// option adds a condition. Of the same one given twice the last counts, as in Redis.
func (f *killFilter) option(name string, value *string) (err error) {
	switch strings.ToUpper(name) {
	case "ID":
		id, ok := redisfmt.ParseInt(*value)
		if !ok || id < 1 {
			return errKillID
		}
		f.id = id
	case "ADDR":
		f.addr = value
	case "LADDR":
		f.laddr = value
	case "TYPE":
		f.kind, err = clientType(*value)
	case "USER":
		if *value != defaultUser {
			return Error("ERR No such user '" + cut(redisfmt.CString(*value)) + "'")
		}
	case "SKIPME":
		switch {
		case redisfmt.EqualFold(*value, "YES"):
			f.self = false
		case redisfmt.EqualFold(*value, "NO"):
			f.self = true
		default:
			return errSyntax
		}
	default:
		return errSyntax
	}
	return err
}

func (f *killFilter) matches(s *Session) bool {
	return (f.id == 0 || f.id == s.ID) &&
		(f.addr == nil || *f.addr == s.Addr) &&
		(f.laddr == nil || *f.laddr == s.LAddr) &&
		(f.kind == nil || f.kind(s))
}

// kill closes the connections and returns how many they are. The one that gives the command gets its
// reply first.
func (f *killFilter) kill(x *Context) int {
	self := x.Session
	killed := x.Engine.Host.Disconnect(func(s *Session) bool { return s != self && f.matches(s) })
	if f.self && f.matches(self) {
		self.Closing = true
		killed++
	}
	return killed
}
