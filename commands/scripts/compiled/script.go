package compiled

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/syntax"

	lua "github.com/yuin/gopher-lua"
)

// chunkName is the name of scripts in errors.
const chunkName = "user_script"

// FunctionSize is about how many bytes a function takes without its code.
const FunctionSize = 1 << 10

// Script is a compiled script. It is immutable, but for Notes, and safe for concurrent use.
type Script struct {
	// Notes is for what callers learn of the script as they run it. It starts as 0.
	Notes atomic.Uint32

	sha   string
	body  string
	flags Flags
	size  int
	proto *lua.FunctionProto
}

// SHA1 returns the hexadecimal digest of the body: 40 lower-case digits.
func (s *Script) SHA1() string { return s.sha }

// Body returns the text of the script.
func (s *Script) Body() string { return s.body }

// Flags returns what the script's first line declares.
func (s *Script) Flags() Flags { return s.flags }

// Size returns the bytes that the script takes in a cache, about.
func (s *Script) Size() int { return s.size }

// Proto returns the compiled function. It belongs to the script and must not change.
func (s *Script) Proto() *lua.FunctionProto { return s.proto }

// SHA1 returns the hexadecimal digest of a script's body.
func SHA1(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// Flags are those of a script's first line: "#!lua flags=no-writes,allow-stale".
type Flags struct {
	Declared       bool // the script has a first line that begins with #!
	NoWrites       bool // no-writes
	AllowOOM       bool // allow-oom
	AllowStale     bool // allow-stale
	NoCluster      bool // no-cluster
	AllowCrossSlot bool // allow-cross-slot-keys
}

func compile(body, sha string) (*Script, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("ERR Error compiling script (new function): script is larger than %d bytes", MaxBody)
	}
	s := &Script{sha: sha, body: body}
	text, err := s.readShebang(body)
	if err != nil {
		return nil, err
	}
	proto, size, err := Chunk(text, chunkName)
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %s", lualib.OneLine(err.Error()))
	}
	s.proto, s.size = proto, len(body)+512+size
	return s, nil
}

// Chunk compiles a text to a function, and returns about how many bytes that takes. name stands for the text in errors, which
// have the words of Lua 5.1.
func Chunk(text, name string) (proto *lua.FunctionProto, size int, err error) {
	defer func() {
		if r := recover(); r != nil {
			proto, err = nil, fmt.Errorf("%s: %v", name, r)
		}
	}()
	chunk, err := syntax.Parse(text, name)
	if err != nil {
		return nil, 0, err
	}
	proto, err = lua.Compile(chunk, name)
	var refused *lua.CompileError
	if errors.As(err, &refused) { // too many registers or constants, or a jump over too much code
		return nil, 0, tooComplex(name, refused.Line)
	}
	if err != nil {
		return nil, 0, err
	}
	if line := numberLists(proto); line > 0 {
		return nil, 0, tooComplex(name, line)
	}
	proto.IsVarArg &^= lua.VarArgNeedsArg // in Lua 5.1 a chunk has no table arg, which each call would make
	return proto, clip(proto), nil
}

func tooComplex(name string, line int) error {
	return fmt.Errorf("%s:%d: function or expression too complex", name, max(line, 1))
}

// clip frees the room that the compiler has left in a function and those within. It returns the bytes they take.
func clip(p *lua.FunctionProto) (size int) {
	p.Code, p.Constants = slices.Clone(p.Code), slices.Clone(p.Constants)
	p.DbgSourcePositions, p.DbgCalls = slices.Clone(p.DbgSourcePositions), slices.Clone(p.DbgCalls)
	p.DbgLocals, p.DbgUpvalues = slices.Clone(p.DbgLocals), slices.Clone(p.DbgUpvalues)
	p.FunctionPrototypes = slices.Clone(p.FunctionPrototypes)
	size = FunctionSize + 12*len(p.Code) + 24*len(p.DbgCalls) + 56*len(p.DbgLocals) + 48*len(p.Constants)
	for _, c := range p.Constants {
		if s, ok := c.(lua.LString); ok {
			size += len(s)
		}
	}
	for _, inner := range p.FunctionPrototypes {
		size += clip(inner)
	}
	return size
}

// readShebang reads the flags of a first line that begins with #! and returns the rest of the body.
func (s *Script) readShebang(body string) (rest string, err error) {
	if !strings.HasPrefix(body, "#!") {
		return body, nil
	}
	end := strings.IndexByte(body, '\n')
	if end < 0 {
		return "", errors.New("ERR Invalid script shebang")
	}
	parts := strings.Fields(body[:end])
	if parts[0] != "#!lua" {
		return "", errors.New("ERR Unexpected engine in script shebang: " + parts[0])
	}
	s.flags.Declared = true
	for _, part := range parts[1:] {
		flags, ok := strings.CutPrefix(part, "flags=")
		if !ok {
			return "", errors.New("ERR Unknown lua shebang option: " + part)
		}
		if flags == "" {
			continue
		}
		for flag := range strings.SplitSeq(flags, ",") {
			set, ok := map[string]*bool{
				"no-writes": &s.flags.NoWrites, "allow-oom": &s.flags.AllowOOM, "allow-stale": &s.flags.AllowStale,
				"no-cluster": &s.flags.NoCluster, "allow-cross-slot-keys": &s.flags.AllowCrossSlot,
			}[flag]
			if !ok {
				return "", errors.New("ERR Unexpected flag in script shebang: " + flag)
			}
			*set = true
		}
	}
	return body[end:], nil
}
