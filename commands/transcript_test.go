package commands

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/test/drill"
)

var rewrite = flag.Bool("rewrite", false, "write the replies as they are now into the transcripts")

// TestTranscripts plays the files in testdata against an engine and compares every reply. A file has a
// keyspace of its own and consists of these lines:
//
//	> SET k "v"        a command, quoted as in redis-cli. Its reply follows in redis-cli's notation, up
//	OK                 to the next blank line, command or directive
//	~ \(integer\) \d+  a reply as a regular expression, if it is not predictable
//	clock +5s          moves the clock
//	session 2          continues as another client, which is connected if it is new
//	received           the client's messages since the last received. They follow up to the next
//	                   blank line, command or directive
//	restart            closes the keyspace and reopens it
//	# redis: same      a real redis-server must give the same replies from here on. The part starts
//	                   with empty databases and new clients, and must not move the clock or restart
//	# redis: differs   ends that part
//	# anything else    a comment
//
// With -rewrite the expectations become the current replies, in the parts marked "redis: same" those of
// Redis. Read the diff.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	eachTranscript(t, func(t *testing.T, steps []step) {
		p := &transcriptPlayer{t: t, harness: newHarness(t), session: 1}
		for i := range steps {
			p.play(&steps[i])
		}
	})
}

// TestTranscriptsOnRedis plays the parts that are marked "redis: same" against a real redis-server.
func TestTranscriptsOnRedis(t *testing.T) {
	redis := startRealRedis(t)
	compared := 0
	eachTranscript(t, func(t *testing.T, steps []step) {
		same, session := false, 1
		conns := map[int]*realConn{}
		for i := range steps {
			switch s := &steps[i]; {
			case s.text == redisSame:
				same, session = true, 1
				conns = map[int]*realConn{1: redis.dial(t)}
				conns[1].do(t, "FLUSHALL")
			case s.text == redisDiffers:
				same = false
			case !same:
			case s.directive() == "session":
				session = s.number(t)
			case s.isCommand():
				if conns[session] == nil {
					conns[session] = redis.dial(t)
				}
				s.compare(t, notation(conns[session].do(t, s.args(t)...)), *rewrite)
				compared++
			case s.directive() == "received":
				s.compare(t, notation(admin.Several(conns[session].received(t))), *rewrite)
				compared++
			}
		}
	})
	if compared == 0 {
		t.Error("no command was compared")
	}
}

// eachTranscript runs a subtest for each file in testdata. With -rewrite it writes the file again.
func eachTranscript(t *testing.T, play func(t *testing.T, steps []step)) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		drill.Check(t, err)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			steps := parseTranscript(string(text))
			play(t, steps)
			if !*rewrite {
				return
			}
			var out strings.Builder
			for _, s := range steps {
				out.WriteString(strings.Join(append([]string{s.text}, s.want...), "\n") + "\n")
			}
			drill.Check(t, os.WriteFile(file, []byte(out.String()), 0o644))
		})
	}
}

const (
	redisSame    = "# redis: same"
	redisDiffers = "# redis: differs"
)

// step is a line of a transcript that is not a reply, with the expected reply if it is a command.
type step struct {
	line int // from 1
	text string
	want []string
}

func parseTranscript(text string) []step {
	var steps []step
	inReply := false
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		s := step{line: i + 1, text: line}
		if inReply && line != "" && !s.isCommand() && !strings.HasPrefix(line, "#") && s.directive() == "" {
			last := &steps[len(steps)-1]
			last.want = append(last.want, line)
			continue
		}
		inReply = s.isCommand() || s.directive() == "received"
		steps = append(steps, s)
	}
	return steps
}

func (s *step) isCommand() bool { return strings.HasPrefix(s.text, "> ") }

// directive returns the first word if it is a directive.
func (s *step) directive() string {
	switch word, _, _ := strings.Cut(s.text, " "); word {
	case "clock", "session", "received", "restart", "purge":
		return word
	}
	return ""
}

func (s *step) argument() string {
	_, arg, _ := strings.Cut(s.text, " ")
	return arg
}

func (s *step) number(t *testing.T) int {
	n, err := strconv.Atoi(s.argument())
	if err != nil {
		t.Fatalf("line %d: %v", s.line, err)
	}
	return n
}

func (s *step) args(t *testing.T) []string {
	args, err := splitArgs(s.argument())
	if err != nil || len(args) == 0 {
		t.Fatalf("line %d: not a command: %s (%v)", s.line, s.text, err)
	}
	return args
}

// pattern returns the regular expression that the reply must match; nil if the reply is literal.
func (s *step) pattern(t *testing.T) *regexp.Regexp {
	if len(s.want) == 0 || !strings.HasPrefix(s.want[0], "~ ") {
		return nil
	}
	p, err := regexp.Compile(`(?s)^(?:` + strings.TrimPrefix(strings.Join(s.want, "\n"), "~ ") + `)$`)
	if err != nil {
		t.Fatalf("line %d: %v", s.line, err)
	}
	return p
}

// compare compares a reply with the expected one. With -rewrite the reply replaces a literal expectation.
func (s *step) compare(t *testing.T, got string, rewrite bool) {
	t.Helper()
	want := strings.Join(s.want, "\n")
	p := s.pattern(t)
	switch {
	case p != nil && p.MatchString(got), p == nil && got == want:
	case p == nil && rewrite:
		s.want = strings.Split(got, "\n")
	default:
		t.Errorf("line %d: %s\ngot:\n%s\nwant:\n%s", s.line, s.text, got, want)
	}
}

// transcriptPlayer plays a file against an engine.
type transcriptPlayer struct {
	t       *testing.T
	harness *harness
	session int
	same    bool // in a part that is played against Redis too
}

// play plays a step, and returns the reply of a command.
func (p *transcriptPlayer) play(s *step) (reply engine.Reply) {
	switch {
	case s.isCommand():
		reply = p.harness.do(p.session, s.args(p.t)...)
		s.compare(p.t, notation(reply), *rewrite && !p.same)
	case s.directive() == "received":
		s.compare(p.t, notation(admin.Several(p.harness.received(p.session))), *rewrite && !p.same)
	case s.directive() == "session":
		p.session = s.number(p.t)
	case s.directive() != "" && p.same:
		p.t.Fatalf("line %d: not possible with a real Redis: %s", s.line, s.text)
	case s.directive() == "clock":
		by, err := time.ParseDuration(s.argument())
		if err != nil || by <= 0 {
			p.t.Fatalf("line %d: %s: %v", s.line, s.text, err)
		}
		p.harness.clock.Advance(by)
		p.harness.engine.Keyspace().BuildIndexes() // as if the builder had had that time
	case s.directive() == "restart":
		p.harness.restart()
	case s.directive() == "purge":
		p.harness.engine.Keyspace().PurgeOnce()
	case s.text == redisSame:
		p.same, p.session, p.harness.sessions = true, 1, map[int]*engine.Session{}
		p.harness.do(1, "FLUSHALL")
	case s.text == redisDiffers:
		p.same = false
	case s.text != "" && !strings.HasPrefix(s.text, "#"):
		p.t.Fatalf("line %d: not understood: %s", s.line, s.text)
	}
	return reply
}
