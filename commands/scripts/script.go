package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"mayfly/commands/scripts/lua"
)

// chunkName is the name of scripts in errors.
const chunkName = "user_script"

// Script is a compiled script. It is immutable, but for Notes, and safe for concurrent use.
type Script struct {
	// Notes is for what callers learn of the script as they run it. It starts as 0.
	Notes atomic.Uint32

	sha   string
	body  string
	flags Flags
	size  int
	chunk *lua.Chunk
}

// SHA1 returns the hexadecimal digest of the body: 40 lower-case digits.
func (s *Script) SHA1() string { return s.sha }

// Body returns the text of the script.
func (s *Script) Body() string { return s.body }

// Flags returns what the script's first line declares.
func (s *Script) Flags() Flags { return s.flags }

// Size returns the bytes that the script takes in a cache, about.
func (s *Script) Size() int { return s.size }

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
	if len(body) > lua.MaxBody {
		return nil, fmt.Errorf("ERR Error compiling script (new function): script is larger than %d bytes", lua.MaxBody)
	}
	s := &Script{sha: sha, body: body}
	text, err := s.readShebang(body)
	if err != nil {
		return nil, err
	}
	if s.chunk, err = lua.Compile(text, chunkName); err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %s", oneLine(err.Error()))
	}
	s.size = len(body) + 512 + s.chunk.Size()
	return s, nil
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
