package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mayfly/expiry"
)

// dataEndings are those of files that a user imports. A folder with such a name is more likely a file that
// does not exist.
var dataEndings = []string{".ndjson", ".jsonl", ".json", ".db", ".txt", ".csv", ".gz", ".zip", ".rdb", ".aof", ".bson"}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// importPaths returns the file and the target of an import; an empty file is standard input. An argument
// that names an existing file is the file. A folder that does not exist is made only if the user says that
// it is one: as the value of --dir, or by a path. Else it may be a file or a server that was misspelt.
func (c *call) importPaths(values []string, in, dir string) (from, to string, err error) {
	if from = in; in == "-" {
		from = "" // as elsewhere a name of standard input
	}
	var targets []string
	if dir != "" {
		targets = append(targets, dir)
	}
	for _, value := range values {
		if isRedisURL(value) && from == "" {
			from = value
		} else if info, err := os.Stat(value); err == nil && info.Mode().IsRegular() && from == "" {
			from = value
		} else if err := checkURL(value, c.tool.name); err != nil {
			return "", "", err
		} else {
			targets = append(targets, value)
		}
	}
	for _, value := range values {
		if slices.Contains(targets, value) && !isAddress(value) && (len(targets) == 1 || !exists(value)) {
			if err := checkTarget(value, from, len(targets) == 1); err != nil {
				return "", "", err
			}
		}
	}
	if len(targets) == 0 && from != "" && in == "" {
		targets = append(targets, defaultDir)
	}
	if len(targets) != 1 {
		return "", "", fmt.Errorf("one data folder or one server must be named: mayfly %s %s", c.tool.name, c.tool.syntax)
	}
	return from, targets[0], nil
}

// checkTarget refuses a target that is probably something else. from is the file to import, empty if none is
// named. Beside another target a path is that of a file.
func checkTarget(value, from string, alone bool) error {
	switch {
	case isFolder(value) || value == "":
		return nil
	case exists(value):
		return fmt.Errorf("%s is a file, not a data folder: the file to read is %s", value, from)
	case slices.Contains(dataEndings, strings.ToLower(filepath.Ext(value))), !alone && strings.ContainsRune(value, os.PathSeparator):
		return fmt.Errorf("no such file: %s (for a new data folder of that name use --dir)", value)
	case strings.ContainsRune(value, os.PathSeparator):
		return nil
	}
	return fmt.Errorf("%s is no file, no data folder and no server: a server is host:port, a new data folder --dir %s", value, value)
}

// checkURL refuses a URL where a folder, a file or a server is named. Only import reads from one, that of a
// Redis.
func checkURL(value, tool string) error {
	scheme, rest, found := strings.Cut(value, "://")
	if !found || strings.ContainsRune(scheme, os.PathSeparator) || exists(value) {
		return nil
	}
	switch {
	case tool == "import" && isRedisURL(value):
		return fmt.Errorf("import reads from one Redis and writes into a data folder or a server of mayfly: such a server is host:port, without %s://", scheme)
	case tool == "import":
		return fmt.Errorf("import cannot read or write %s:// addresses: it reads a file, standard input or redis://host:port/number, and a server is host:port", scheme)
	case tool == "export" && isRedisURL(value):
		return fmt.Errorf("export does not take %s:// addresses: a server of mayfly is host:port; mayfly import %s://host:port/number --container <name> copies the keys of a Redis", scheme, scheme)
	}
	host, _, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if tool == "export" {
		return fmt.Errorf("export does not take %s:// addresses: a server is host:port, perhaps %s", scheme, expiry.Quote(host))
	}
	return fmt.Errorf("%s does not take %s:// addresses: it reads a data folder that no server uses", tool, scheme)
}

// checkFolder refuses what is no data folder on this machine.
func checkFolder(dir, tool string) error {
	if err := checkURL(dir, tool); err != nil {
		return err
	}
	if isAddress(dir) {
		return fmt.Errorf("%s is the address of a server: %s reads a data folder that no server uses", dir, tool)
	}
	return nil
}

// peekInput makes standard input the file to import. It refuses a terminal, and an input without a byte if
// mayBeEmpty is false, before anything is made for what does not come.
func (c *call) peekInput(mayBeEmpty bool) error {
	if c.Terminals.In {
		return errors.New("standard input is a terminal: name the file to read")
	}
	in := bufio.NewReader(c.In)
	if _, err := in.Peek(1); err == io.EOF && !mayBeEmpty {
		return errors.New("standard input is empty: name the file to read")
	}
	c.In = in
	return nil
}

// exportPaths returns the source and the file of an export; an empty file is standard output.
func (c *call) exportPaths(values []string, format, out string) (from, to string, err error) {
	switch {
	case format != formatLines && format != formatDatabase:
		return "", "", fmt.Errorf("invalid format %s: legal are %s and %s", expiry.Quote(format), formatLines, formatDatabase)
	case len(values) > 2 || len(values) == 2 && out != "":
	case len(values) == 2:
		from, to = values[0], values[1]
	case len(values) == 1 && out == "" && format == formatDatabase:
		if isAddress(values[0]) || isFolder(values[0]) {
			return "", "", fmt.Errorf("name the file to write: mayfly export %s all.db --format %s", values[0], formatDatabase)
		}
		from, to = defaultDir, values[0]
	case len(values) == 1:
		from, to = values[0], out
	}
	switch {
	case from == "":
		return "", "", fmt.Errorf("one data folder or one server must be named, and at most one file: mayfly %s %s", c.tool.name, c.tool.syntax)
	case checkURL(from, c.tool.name) != nil:
		return "", "", checkURL(from, c.tool.name)
	case isAddress(from):
	case !exists(from) && !strings.ContainsRune(from, os.PathSeparator):
		return "", "", fmt.Errorf("no such file or directory: %s; a server is host:port", from)
	case to != "" && isAddress(to):
		return "", "", fmt.Errorf("%s is the address of a server: an export writes a file, which import reads", to)
	}
	return from, to, nil
}
