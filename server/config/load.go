package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/redisfmt"

	"github.com/rs/zerolog"
)

const envPrefix = "MAYFLY"

// Load returns these instead of a configuration if the command line asks for something else.
var (
	ErrHelp    = errors.New("help is wanted")
	ErrVersion = errors.New("the version is wanted")
)

// Load reads the options from the arguments of the command line (without the program's name), the
// environment and the config file. The first of these that sets an option rules, but values must be
// legal everywhere. The error has one line for each mistake.
func Load(args []string) (*Config, error) {
	settings, err := defaults()
	if err != nil {
		return nil, err
	}
	l := newLoader(settings)
	if err := l.readArguments(args); err != nil {
		return nil, err
	}
	l.nextSource()
	l.readEnvironment(os.Environ())
	l.nextSource()
	if settings.ConfigFile != "" {
		l.readFile(settings.ConfigFile)
	}
	if err := l.failure(); err != nil {
		return nil, err
	}
	if err := settings.resolve(); err != nil {
		return nil, err
	}
	c := New(settings)
	c.users.Unproven = settings.checkProof(true)
	if err := c.loadUsers(settings); err != nil {
		return nil, err
	}
	c.ignored, c.links = l.ignored, l.links
	return c, nil
}

// resolve makes the paths of the data folder and of the file of users absolute.
func (s *Settings) resolve() (err error) {
	if s.Dir, err = filepath.Abs(s.Dir); err != nil {
		return fmt.Errorf("option dir: %w", err)
	}
	if s.ACLFile != "" && !filepath.IsAbs(s.ACLFile) {
		s.ACLFile = filepath.Join(s.Dir, s.ACLFile) // as in Redis, which works in that folder
	}
	return nil
}

// LogIgnored logs which parts of the configuration have no effect.
func (c *Config) LogIgnored(log zerolog.Logger) {
	if len(c.ignored) > 0 {
		log.Info().Strs("directives", c.ignored).Msg("ignored directives of Redis that have no meaning here")
	}
	c.warnOfReaders(log)
	if len(c.links) > 0 {
		log.Debug().Strs("variables", c.links).Msg("ignored environment variables that describe a service of Kubernetes")
	}
}

// defaults returns the settings with every option at its default.
func defaults() (*Settings, error) {
	settings := new(Settings)
	for _, o := range Options {
		if o.Default == "" {
			continue
		}
		if err := o.in(settings).Set(o.Default); err != nil {
			return nil, fmt.Errorf("default of option %s: %w", o.Name, err)
		}
	}
	return settings, nil
}

// A loader reads options from one source after the other, the strongest first.
type loader struct {
	settings *Settings
	settled  map[*Option]bool // set by a stronger source
	given    map[*Option]bool // set by the source that is being read
	mistakes []mistake
	ignored  []string // directives of Redis, each once
	links    []string // variables of Kubernetes

	included map[*Option]bool // set by a file that another includes

	mirrors map[*Option]func() // check what must be the value of another option, which may come later

	includesUsers bool // a file that another includes has users
	depth         int  // of such files
}

// A mistake is an illegal setting.
type mistake struct {
	option *Option // nil if it concerns none
	text   string  // one line
}

func newLoader(settings *Settings) *loader {
	return &loader{settings: settings, settled: make(map[*Option]bool), given: make(map[*Option]bool), included: make(map[*Option]bool), mirrors: make(map[*Option]func())}
}

// nextSource goes on to a weaker source.
func (l *loader) nextSource() {
	maps.Copy(l.settled, l.given)
	clear(l.given)
}

func (l *loader) fail(o *Option, format string, parts ...any) {
	l.mistakes = append(l.mistakes, mistake{o, fmt.Sprintf(format, parts...)})
}

// failure returns an error with all mistakes; nil if there are none.
func (l *loader) failure() error {
	const most = 20 // fits on one screen, even for a wrong file
	var lines []string
	for _, check := range l.mirrors {
		check()
	}
	for _, m := range l.mistakes[:min(len(l.mistakes), most)] {
		lines = append(lines, m.text)
	}
	if more := len(l.mistakes) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more mistakes like these", more))
	}
	if lines == nil {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// take takes an option, or a directive of Redis, from the source. A mistake names the option, the value,
// the legal values, and where it was set (origin).
func (l *loader) take(name string, values []string, origin string) {
	if strings.EqualFold(name, "user") {
		l.takeUser(values, origin)
		return
	}
	o := lookUpOption(name)
	value := strings.Join(values, " ")
	if o == nil {
		l.takeDirective(name, values, origin)
		return
	}
	if o.Compat && l.settled[o.named()] {
		return // a stronger source rules, and this one does no harm
	}
	illegal := func(s *Settings) bool { return o.in(s).Set(value) != nil }
	fail := func() {
		l.fail(o, "option %s %s has the illegal value %q, because %s%s", o.Name, origin, value, o.Doc, o.legally())
	}
	switch {
	case len(values) == 0:
		l.fail(o, "option %s %s has no value%s", o.Name, origin, o.legally())
	case len(values) > 1 && !o.Many:
		l.fail(o, "option %s %s has %d values but takes one%s", o.Name, origin, len(values), o.legally())
	case o.isMirror() && l.settled[lookUpOption("max-value-size")]: // a stronger source has changed what it must be
		l.ignore(o.Name + " " + value)
	case o.isMirror():
		l.given[o] = true
		l.mirrors[o] = func() {
			if illegal(l.settings) {
				fail()
			}
		}
	case illegal(new(Settings)) && o.AcceptedWeaker:
		l.ignore(o.Name + " " + value)
	case illegal(new(Settings)) && o.Compat:
		fail()
	case illegal(new(Settings)):
		l.fail(o, "option %s %s has the illegal value %q%s", o.Name, origin, value, o.legally())
	default:
		l.set(o, value)
	}
}

// set gives an option a legal value, unless a stronger source has done so.
func (l *loader) set(o *Option, value string) {
	l.given[o.named()] = true
	if l.depth > 0 {
		l.included[o] = true
	}
	if o.Compat { // as in Redis, the last one counts
		l.mistakes = slices.DeleteFunc(l.mistakes, func(m mistake) bool { return m.option == o })
	}
	if l.settled[o.named()] {
		return
	}
	if err := o.in(l.settings).Set(value); err != nil {
		l.fail(o, "option %s: %v", o.Name, err) // Set succeeded before
	}
}

func (l *loader) ignore(directive string) {
	if !slices.Contains(l.ignored, directive) {
		l.ignored = append(l.ignored, directive)
	}
}

// readArguments reads arguments as Redis takes them: [config-file] --name value ... --name value, or
// --name=value.
func (l *loader) readArguments(args []string) error {
	const origin = "on the command line"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		l.take("config", args[:1], origin)
		args = args[1:]
	}
	for len(args) > 0 {
		arg := args[0]
		end := 1
		for end < len(args) && !strings.HasPrefix(args[end], "--") {
			end++
		}
		values := args[1:end]
		args = args[end:]
		switch arg {
		case "-h", "-help", "--help":
			return ErrHelp
		case "-v", "-version", "--version":
			return ErrVersion
		}
		name, isOption := strings.CutPrefix(arg, "--")
		if !isOption || name == "" {
			l.fail(nil, "illegal argument %q %s: options are written --name value; --help lists them", arg, origin)
			continue
		}
		if key, value, ok := strings.Cut(name, "="); ok {
			name, values = key, append([]string{value}, values...)
		}
		l.take(name, values, origin)
	}
	return nil
}

// readEnvironment reads the variables that begin with our prefix. Empty ones count as not set.
func (l *loader) readEnvironment(environ []string) {
	slices.Sort(environ)
	for _, variable := range environ {
		key, value, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(key, envPrefix+"_")
		switch {
		case !ours || value == "":
		case isServiceLink(name, value):
			l.links = append(l.links, key)
		default:
			l.take(strings.ToLower(strings.ReplaceAll(name, "_", "-")), []string{value}, "in the environment variable "+key)
		}
	}
}

// readFile reads a config file.
func (l *loader) readFile(path string) {
	f, err := os.Open(path)
	if err != nil {
		l.unreadable(path, err)
		return
	}
	defer f.Close()
	l.readLines(path, f)
}

// readLines reads a file in the syntax of redis.conf. Each line has a name and its values, quoted as in
// redis-cli; lines that begin with # are comments.
func (l *loader) readLines(path string, r io.Reader) {
	const longestLine = 1 << 20
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for number := 1; lines.Scan(); number++ {
		origin := fmt.Sprintf("in %s:%d", path, number)
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words, ok := redisfmt.SplitLine(line)
		switch {
		case !ok:
			l.fail(nil, "unbalanced quotes %s", origin)
		case strings.EqualFold(words[0], "config"):
			l.fail(nil, "illegal option config %s: a config file names another with include", origin)
		case strings.EqualFold(words[0], "include"):
			l.include(words[1:], origin)
		default:
			l.take(words[0], words[1:], origin)
		}
	}
	if err := lines.Err(); err != nil {
		l.unreadable(path, err)
	}
}

func (l *loader) unreadable(path string, err error) {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		err = pathErr.Err
	}
	l.fail(nil, "cannot read the config file %s: %v", path, err)
}

// include reads the files that a config file includes, in its place. As in Redis, the path is relative to
// the folder where the server was started. A path with wildcards may match no file.
func (l *loader) include(paths []string, origin string) {
	const deepest = 16
	if len(paths) != 1 {
		l.fail(nil, "include %s has %d values but takes one, the path of a config file", origin, len(paths))
		return
	}
	if l.depth == deepest {
		l.fail(nil, "include %s: files include each other more than %d deep", origin, deepest)
		return
	}
	files := paths
	if strings.ContainsAny(paths[0], "*?[") {
		var err error
		if files, err = filepath.Glob(paths[0]); err != nil {
			l.fail(nil, "include %s has the illegal pattern %q", origin, paths[0])
		}
	}
	l.depth++
	defer func() { l.depth-- }()
	for _, path := range files {
		l.readFile(path)
	}
}

// Legal describes the legal values in words; empty: any.
func (o *Option) Legal() string { return o.in(new(Settings)).legal() }

// legally describes the legal values as the end of an error.
func (o *Option) legally() string {
	legal := o.Legal()
	if legal == "" {
		return ""
	}
	text := strings.TrimRight("; legal: "+legal+" "+o.Unit, " ")
	if o.Unit == "bytes" {
		text += ", or with a unit: k, m, g for powers of 1000, kb, mb, gb for powers of 1024"
	}
	return text
}
