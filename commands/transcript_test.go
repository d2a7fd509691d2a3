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
)

var rewrite = flag.Bool("rewrite", false, "write the replies as they are now into the transcripts")

// TestTranscripts plays the files in testdata against an engine and compares every reply. A file has
// a keyspace of its own and consists of these lines:
//
//	> SET k "v"        a command, quoted as in redis-cli; the lines up to the next blank line,
//	OK                 command or directive are its reply in redis-cli's notation
//	~ \(integer\) \d+  a reply that is a regular expression, for what cannot be foretold
//	clock +5s          moves the clock
//	session 2          goes on as another client, connecting it first if it is new
//	restart            closes the keyspace and opens it again
//	# redis: same      what follows must be what a real redis-server answers too; it starts with
//	                   empty databases and new clients, and may neither move the clock nor restart
//	# redis: differs   ends that
//	# anything else    a comment
//
// With -rewrite the expectations become what the engine answers now: read the diff.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			player := &transcriptPlayer{t: t, file: file, world: newWorld(t), session: 1}
			out := player.play(parseTranscript(string(text)))
			if *rewrite && !t.Failed() {
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestTranscriptsOnRedis plays those parts of the transcripts that are marked "# redis: same"
// against a real redis-server.
func TestTranscriptsOnRedis(t *testing.T) {
	redis := startRealRedis(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), redisSame) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			same, session := false, 1
			conns := map[int]*realConn{}
			for _, step := range parseTranscript(string(text)) {
				switch {
				case step.text == redisSame:
					same, session = true, 1
					conns = map[int]*realConn{1: redis.dial(t)}
					conns[1].do(t, "FLUSHALL")
				case step.text == redisDiffers:
					same = false
				case !same:
				case step.directive() == "session":
					session = step.number(t)
				case step.isCommand():
					if conns[session] == nil {
						conns[session] = redis.dial(t)
					}
					step.compare(t, file, notation(conns[session].do(t, step.args(t)...)))
					compared++
				}
			}
		})
	}
	if compared == 0 {
		t.Error("no command was compared")
	}
}

const (
	redisSame    = "# redis: same"
	redisDiffers = "# redis: differs"
)

// step is a line of a transcript that is not a reply, with the reply expected if it is a command.
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
		inReply = s.isCommand()
		steps = append(steps, s)
	}
	return steps
}

func (s *step) isCommand() bool { return strings.HasPrefix(s.text, "> ") }

// directive is the first word if it is one of the directives.
func (s *step) directive() string {
	switch word, _, _ := strings.Cut(s.text, " "); word {
	case "clock", "session", "restart":
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

// pattern is the regular expression that the reply must match; nil if the reply is given literally.
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

func (s *step) compare(t *testing.T, file, got string) {
	t.Helper()
	want := strings.Join(s.want, "\n")
	if p := s.pattern(t); p != nil {
		if !p.MatchString(got) {
			t.Errorf("%s:%d: %s\ngot:\n%s\nwant a match of:\n%s", file, s.line, s.text, got, p)
		}
	} else if got != want {
		t.Errorf("%s:%d: %s\ngot:\n%s\nwant:\n%s", file, s.line, s.text, got, want)
	}
}

// transcriptPlayer plays one file against an engine.
type transcriptPlayer struct {
	t       *testing.T
	file    string
	world   *world
	session int
	same    bool // in a part that is played against Redis too
}

// play carries the steps out and returns the file as it should be.
func (p *transcriptPlayer) play(steps []step) string {
	var out strings.Builder
	for _, s := range steps {
		out.WriteString(s.text + "\n")
		switch {
		case s.isCommand():
			got := notation(p.world.do(p.session, s.args(p.t)...))
			switch {
			case !*rewrite:
				s.compare(p.t, p.file, got)
			case s.pattern(p.t) != nil:
				s.compare(p.t, p.file, got)
				out.WriteString(strings.Join(s.want, "\n") + "\n")
			case got != "":
				out.WriteString(got + "\n")
			}
		case s.directive() == "session":
			p.session = s.number(p.t)
		case s.directive() != "" && p.same:
			p.t.Fatalf("%s:%d: not possible with a real Redis: %s", p.file, s.line, s.text)
		case s.directive() == "clock":
			by, err := time.ParseDuration(s.argument())
			if err != nil || by <= 0 {
				p.t.Fatalf("%s:%d: %s: %v", p.file, s.line, s.text, err)
			}
			p.world.clock.Advance(by)
		case s.directive() == "restart":
			p.world.restart()
		case s.text == redisSame:
			p.same, p.session, p.world.sessions = true, 1, map[int]*Session{}
			p.world.do(1, "FLUSHALL")
		case s.text == redisDiffers:
			p.same = false
		case s.text != "" && !strings.HasPrefix(s.text, "#"):
			p.t.Fatalf("%s:%d: not understood: %s", p.file, s.line, s.text)
		}
	}
	return out.String()
}
