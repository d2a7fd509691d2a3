package tools

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	_ "mayfly/commands" // fills the table of commands
	"mayfly/commands/suggest"
	"mayfly/expiry/clock"
	"mayfly/tools/progress"
)

// Exit codes. Repair and import end with exitIncomplete when they have done their work and something is
// missing from the result.
const (
	exitOK         = 0
	exitIncomplete = 1 // of check: there is damage
	exitFailed     = 2
)

// Environment holds the streams and the clock of a tool.
type Environment struct {
	In        io.Reader
	Out, Err  io.Writer
	Clock     clock.Clock // nil means the system's
	Terminals Terminals
}

// Terminals says which of a tool's streams are terminals.
type Terminals struct{ In, Out, Err bool }

// TerminalsOf returns which of the process' streams are terminals.
func TerminalsOf(in, out, err *os.File) Terminals {
	return Terminals{In: progress.IsTerminal(in), Out: progress.IsTerminal(out), Err: progress.IsTerminal(err)}
}

// tool is one command of the program.
type tool struct {
	name    string
	syntax  string
	summary string
	run     func(t *call) (code int, err error)
}

var all = []tool{checkTool, repairTool, exportTool, importTool, forecastTool, topTool, healthTool}

// Is reports whether the first argument of the program names a tool.
func Is(args []string) bool { return len(args) > 0 && find(args[0]) != nil }

// Names returns the names of all tools.
func Names() []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}

func find(name string) *tool {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// Run runs the tool that the first argument names, with the other arguments. It returns the program's exit
// code. Errors are one line.
func Run(args []string, s Environment) (code int) {
	if s.Clock == nil {
		s.Clock = clock.NewSystem(0)
	}
	t := find(args[0])
	c := &call{Environment: s, tool: t}
	c.begin(args[1:])
	code, err := t.run(c)
	c.status.Clear()
	if errors.Is(err, flag.ErrHelp) {
		c.help()
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(s.Err, "mayfly %s: %s\n", t.name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return code
}

// call is a tool at work.
type call struct {
	Environment
	tool   *tool
	flags  *flag.FlagSet
	args   []string
	status *progress.Line

	keyboard, screen *os.File // standard input and output, nil if they are no files
}

// begin prepares the tool for its arguments.
func (c *call) begin(args []string) {
	c.args, c.flags = args, flag.NewFlagSet(c.tool.name, flag.ContinueOnError)
	c.flags.SetOutput(io.Discard)
	c.status = progress.New(c.Err, c.Terminals.Err, clock.Monotonic)
	c.keyboard, _ = c.In.(*os.File)
	c.screen, _ = c.Out.(*os.File)
	c.Out, c.Err = c.status.Clearing(c.Out), c.status.Clearing(c.Err)
}

// parse reads the options and the other arguments. There must be one argument for each name.
func (c *call) parse(names ...string) (values []string, err error) {
	values, err = c.arguments()
	if err == nil && len(values) != len(names) {
		err = fmt.Errorf("%d arguments instead of %d: mayfly %s %s", len(values), len(names), c.tool.name, c.tool.syntax)
	}
	return values, err
}

// arguments reads the options, which may stand before and after other arguments. It returns the others.
func (c *call) arguments() (values []string, err error) {
	for args := c.args; ; {
		if err := c.flags.Parse(args); err != nil {
			return nil, c.meant(err)
		}
		if args = c.flags.Args(); len(args) == 0 {
			return values, nil
		}
		values, args = append(values, args[0]), args[1:]
	}
}

// meant makes an error of package flag name an unknown option as it is written here, and the one that may be
// meant.
func (c *call) meant(err error) error {
	unknown, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return err
	}
	var names []string
	c.flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	text := "unknown option --" + unknown + ": "
	if word := suggest.Nearest(unknown, names); word != "" {
		text += "did you mean --" + word + "? "
	}
	return errors.New(text + "mayfly " + c.tool.name + " --help lists the options")
}

// help prints what the tool does and its options. It writes two dashes, as everywhere else; package flag
// writes one.
func (c *call) help() {
	fmt.Fprintf(c.Out, "mayfly %s %s\n%s\n", c.tool.name, c.tool.syntax, c.tool.summary)
	c.flags.VisitAll(func(f *flag.Flag) {
		value, meaning := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" { // others say what they mean
			meaning += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(c.Out, "  %-23s %s\n", strings.TrimRight("--"+f.Name+" "+value, " "), meaning)
	})
}
