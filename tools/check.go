package tools

import (
	"encoding/json"
	"fmt"
	"io"

	"mayfly/expiry"
	"mayfly/keyspace/repair"
	"mayfly/vfs"
)

var checkTool = tool{
	name:    "check",
	syntax:  "<dir> [--json]",
	summary: "Reads all of a data folder that no server uses and reports what is sound. It changes nothing. Exit code: 0 sound, 1 damaged, 2 could not check.",
	run:     check,
}

func check(c *call) (int, error) {
	asJSON := c.flags.Bool("json", false, "print JSON, for programs")
	values, err := c.parse("dir")
	if err == nil {
		err = checkFolder(values[0], c.tool.name)
	}
	if err != nil {
		return exitFailed, err
	}
	in, err := repair.Inspect(vfs.OS, values[0], c.status.File("checking"))
	if err != nil {
		return exitFailed, Advise(err, values[0])
	}
	if *asJSON {
		err = printJSON(c.Out, in)
	} else {
		err = printInspection(c.Out, in)
	}
	if err != nil {
		return exitFailed, err
	}
	if in.State == repair.Damaged {
		return exitIncomplete, nil
	}
	return exitOK, nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printInspection(w io.Writer, in *repair.Inspection) error {
	records, bytes := printFiles(w, in.Files)
	for _, note := range in.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	verdict := map[repair.FileState]string{
		repair.Sound:   "all is sound",
		repair.Torn:    "what files confirm is sound; the next start cuts the unconfirmed end off and keeps it aside",
		repair.Damaged: fmt.Sprintf("DAMAGED: no server starts with it; mayfly repair %s <newdir> copies what is sound", in.Dir),
	}[in.State]
	_, err := fmt.Fprintf(w, "%d files, %d records, %d bytes: %s\n", len(in.Files), records, bytes, verdict)
	return err
}

// printFiles prints a line for each file and each problem. It returns the sums.
func printFiles(w io.Writer, files []repair.FileReport) (records, bytes int64) {
	for _, f := range files {
		fmt.Fprintf(w, "%-24s %9d records %12d bytes  %s\n", f.File, f.Records, f.Bytes, f.State)
		for _, p := range f.Problems {
			fmt.Fprintf(w, "  %s\n", problemText(p))
		}
		records += f.Records
		bytes += f.Bytes
	}
	return records, bytes
}

// problemText says in one line what is wrong with a range.
func problemText(p repair.Problem) string {
	text := p.Reason
	if p.To > 0 {
		text = fmt.Sprintf("bytes %d to %d: %s", p.From, p.To, p.Reason)
	}
	switch {
	case p.Container != "":
		text += fmt.Sprintf(" (item %s of container %s, as far as can be read)", expiry.Quote(p.ID), expiry.Quote(p.Container))
	case p.Key != "":
		text += fmt.Sprintf(" (record %s, as far as can be read)", expiry.Quote(p.Key))
	}
	return text
}
