package server

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/peterbourgon/ff/v3"
)

const (
	envPrefix   = "MAYFLY"
	commandLine = "on the command line"
)

// What LoadConfig returns instead of a configuration when the user asked for something else.
var (
	ErrHelp    = errors.New("help is wanted")
	ErrVersion = errors.New("the version is wanted")
)

// LoadConfig reads the options from the arguments of the command line (without the program's name),
// the environment and the config file. Where several set an option, the first of these rules; but
// what they say must be legal everywhere. Errors are one clear line.
func LoadConfig(args []string) (*Config, error) {
	args, err := joinArguments(args)
	if err != nil {
		return nil, err
	}
	if err := checkEnvironment(os.Environ()); err != nil {
		return nil, err
	}
	settings, err := defaults()
	if err != nil {
		return nil, err
	}
	flags := flag.NewFlagSet("mayfly", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, o := range Options {
		flags.Var(o.in(settings), o.Name, o.Doc)
	}
	err = ff.Parse(flags, args,
		ff.WithEnvVarPrefix(envPrefix),
		ff.WithConfigFileVia(&settings.ConfigFile),
		ff.WithConfigFileParser(func(r io.Reader, set func(name, value string) error) error {
			return parseConfigFile(settings.ConfigFile, r, set)
		}))
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("cannot read the config file %s: %w", pathErr.Path, pathErr.Err)
	}
	if err != nil {
		return nil, err
	}
	if settings.Dir, err = filepath.Abs(settings.Dir); err != nil {
		return nil, fmt.Errorf("option dir: %w", err)
	}
	return newConfig(settings), nil
}

// defaults are the settings if nothing is set.
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

// joinArguments turns arguments as Redis takes them, [config-file] --name value ... --name value,
// into one --name=value an option, each checked.
func joinArguments(args []string) ([]string, error) {
	var joined []string
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		joined = append(joined, "--config="+args[0])
		args = args[1:]
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch arg {
		case "-h", "-help", "--help":
			return nil, ErrHelp
		case "-v", "-version", "--version":
			return nil, ErrVersion
		}
		name, isOption := strings.CutPrefix(arg, "--")
		if !isOption || name == "" {
			return nil, fmt.Errorf("illegal argument %q %s: options are written --name value; --help lists them", arg, commandLine)
		}
		var values []string
		if key, value, ok := strings.Cut(name, "="); ok {
			name, values = key, []string{value}
		}
		for len(args) > 0 && !strings.HasPrefix(args[0], "--") {
			values = append(values, args[0])
			args = args[1:]
		}
		o, value, err := checkSetting(name, values, commandLine)
		if err != nil {
			return nil, err
		}
		joined = append(joined, "--"+o.Name+"="+value)
	}
	return joined, nil
}

// checkEnvironment checks the variables that begin with our prefix. Empty ones count as not set.
func checkEnvironment(environ []string) error {
	for _, variable := range environ {
		key, value, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(key, envPrefix+"_")
		if !ours || value == "" {
			continue
		}
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if _, _, err := checkSetting(name, []string{value}, "in the environment variable "+key); err != nil {
			return err
		}
	}
	return nil
}

// parseConfigFile reads a file in the syntax of redis.conf: a name and its values a line, with the
// quotes of redis-cli; lines that begin with # are comments.
func parseConfigFile(path string, r io.Reader, set func(name, value string) error) error {
	const longestLine = 1 << 20
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for number := 1; lines.Scan(); number++ {
		origin := fmt.Sprintf("in %s:%d", path, number)
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words, ok := splitLine(line)
		if !ok {
			return fmt.Errorf("unbalanced quotes %s", origin)
		}
		if strings.EqualFold(words[0], "config") {
			return fmt.Errorf("illegal option config %s: a config file cannot name another", origin)
		}
		o, value, err := checkSetting(words[0], words[1:], origin)
		if err != nil {
			return err
		}
		if err := set(o.Name, value); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read the config file %s: %w", path, err)
	}
	return nil
}

// splitLine splits a line into words as redis-cli does; ok is false if quotes are unbalanced.
func splitLine(line string) (list []string, ok bool) {
	rest := []byte(line)
	for {
		for len(rest) > 0 && isSpace(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return list, true
		}
		var word inline
		if rest, ok = word.argument(rest); !ok {
			return nil, false
		}
		list = append(list, string(word.text))
	}
}

// checkSetting finds the option of a name and joins its values into one, if they are legal. The
// error is one line that names the option, the value, what is legal, and where it was set.
func checkSetting(name string, values []string, origin string) (*Option, string, error) {
	o := lookUpOption(name)
	value := strings.Join(values, " ")
	switch {
	case o == nil:
		return nil, "", fmt.Errorf("unknown option %q with value %q %s: --help lists the options", name, value, origin)
	case len(values) == 0:
		return nil, "", fmt.Errorf("option %s %s has no value%s", o.Name, origin, o.legally())
	case len(values) > 1 && !o.Many:
		return nil, "", fmt.Errorf("option %s %s has %d values but takes one%s", o.Name, origin, len(values), o.legally())
	}
	if err := o.in(new(Settings)).Set(value); err != nil {
		return nil, "", fmt.Errorf("option %s %s has the illegal value %q%s", o.Name, origin, value, o.legally())
	}
	return o, value, nil
}

// Legal says in words which values are legal; empty: any.
func (o *Option) Legal() string { return o.in(new(Settings)).legal() }

// legally tells, to end an error with, which values are legal.
func (o *Option) legally() string {
	legal := o.Legal()
	if legal == "" {
		return ""
	}
	return strings.TrimRight("; legal: "+legal+" "+o.Unit, " ")
}

// PrintHelp lists every option with its default and unit.
func PrintHelp(w io.Writer) error {
	const head = `mayfly is a Redis-protocol server for JSON documents that die on time.

Usage: mayfly [config-file] [--option value ...]
       mayfly check | repair | export | import ...    tools for data folders; each has --help

Options can also be set in the config file, a line each (port 7000), and in the
environment (MAYFLY_PORT=7000, dashes become underscores). The command line goes
before the environment, the environment before the file.

`
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, head)
	printOptions(table, false)
	fmt.Fprint(table, "\nFor programs and config files that know Redis:\n\n")
	printOptions(table, true)
	fmt.Fprint(table, "\n--help\tprint this\n--version\tprint the version\n")
	return table.Flush()
}

func printOptions(w io.Writer, compat bool) {
	fmt.Fprint(w, "option\tdefault\tunit\tmeaning (legal values)\n")
	for _, o := range Options {
		if o.Compat != compat {
			continue
		}
		def, doc := o.Default, o.Doc
		if def == "" {
			def = `""`
		}
		if legal := o.Legal(); legal != "" {
			doc += " (" + legal + ")"
		}
		fmt.Fprintf(w, "--%s\t%s\t%s\t%s\n", o.Name, def, o.Unit, doc)
	}
}
