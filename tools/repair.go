package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/repair"
	"mayfly/vfs"
)

var repairTool = tool{
	name:   "repair",
	syntax: "<dir> <newdir> [--accept-clock] [--json]",
	summary: "Copies what is sound of a data folder that no server uses into a new one. Nothing in the old folder is changed. " +
		"--accept-clock brings back the time of a folder that is ahead of this machine's clock: what died by the folder's time is left out, what was written later than now counts as written now. " +
		"Exit code: 0 all was copied, 1 something is lost or uncertain: see the report, 2 could not repair.",
	run: runRepair,
}

// What a repair adds to the new folder.
const (
	reportName   = "repair-report.txt"
	doubtfulName = "repair-doubtful.ndjson"
)

func runRepair(c *call) (int, error) {
	asJSON := c.flags.Bool("json", false, "print JSON, for programs")
	acceptClock := c.flags.Bool("accept-clock", false, "take this machine's clock for right where the folder's time is ahead of it")
	values, err := c.parse("dir", "newdir")
	if err == nil {
		err = checkFolder(values[0], c.tool.name)
	}
	if err != nil {
		return exitFailed, err
	}
	now := int64(0)
	if *acceptClock {
		now = c.Clock.Now()
	}
	report, err := repair.Run(vfs.OS, values[0], values[1], now, addReport, c.status.File("reading"))
	if err != nil {
		return exitFailed, Advise(err, values[0])
	}
	if *asJSON {
		err = printJSON(c.Out, report)
	} else {
		err = printRepair(c.Out, report)
	}
	if err != nil {
		return exitFailed, err
	}
	if !report.Clean() {
		return exitIncomplete, nil
	}
	return exitOK, nil
}

// addReport writes the report into the new folder, and what is doubtful as lines to be imported.
func addReport(dir string, r *repair.Report) error {
	if err := writeNew(filepath.Join(dir, reportName), func(w io.Writer) error { return printRepair(w, r) }); err != nil {
		return err
	}
	doubtful := slices.DeleteFunc(slices.Clone(r.Doubtful), func(it repair.Item) bool { return it.Hidden })
	if len(doubtful) == 0 {
		return nil
	}
	return writeNew(filepath.Join(dir, doubtfulName), func(w io.Writer) error {
		var lines lineWriter
		for _, it := range doubtful {
			if _, err := w.Write(lines.item(it.Container, it.ID, it.Item)); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeNew writes a file that must not exist yet and forces it to disk.
func writeNew(path string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(write(w), w.Flush(), f.Sync(), f.Close())
}

func printRepair(w io.Writer, r *repair.Report) error {
	fmt.Fprintf(w, "Repair of %s into %s\n\n", r.From, r.To)
	printFiles(w, r.Files)
	section := func(title string, items []repair.Item) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s\n", title)
		for _, it := range items {
			fmt.Fprintf(w, "  %s %s", expiry.Quote(it.Container), expiry.Quote(it.ID))
			if it.TS != 0 {
				fmt.Fprintf(w, ", written at %d", it.TS)
			}
			fmt.Fprintf(w, " (%s", it.File)
			if it.To != 0 {
				fmt.Fprintf(w, ", bytes %d to %d", it.From, it.To)
			}
			fmt.Fprint(w, ")\n")
		}
	}
	section("Lost: no version of these items could be read. As far as their names could.", r.Lost)
	section("Older versions: the newest version of these items is damaged, the one before it was copied.", r.Older)
	section("Doubtful, and therefore not copied but written to "+doubtfulName+": a delete in a damaged range names these items. Entries of logs and state of groups are only named.", r.Doubtful)
	if len(r.Policies) > 0 {
		fmt.Fprintf(w, "\nContainers\n")
		for _, text := range r.Policies {
			fmt.Fprintf(w, "  %s\n", text)
		}
	}
	if r.Exposed > 0 {
		fmt.Fprintf(w, "\n%d other items were written before a damaged range of their files: had it a newer version of one of them, or its deletion, that is lost.\n", r.Exposed)
	}
	if r.Unknown > 0 {
		fmt.Fprintf(w, "\n%d damaged ranges or missing files do not tell what they held: items of which there is no other trace may have been lost with them.\n", r.Unknown)
	}
	if r.NoManifest {
		fmt.Fprintf(w, "\nThe file \"manifest\" is missing or damaged: a file that is missing, cut short or an older copy may not have been noticed.\n")
	}
	if d := r.Redated; d != nil {
		fmt.Fprintf(w, "\nThe folder was %v ahead of the clock: %d items that were dead by its time are left out, %d that were written later count as written now.\n",
			time.Duration(d.Ahead)*time.Millisecond, d.Dead, d.Later)
	}
	_, err := fmt.Fprintf(w, "\n%d items of %d containers copied\n", r.Items, r.Containers)
	if r.Logged > 0 {
		_, err = fmt.Fprintf(w, "%d records of logs of deaths and their groups copied\n", r.Logged)
	}
	return err
}
