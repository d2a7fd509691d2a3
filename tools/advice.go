package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
)

// Advise adds to an error about a data folder what to do about it.
func Advise(err error, dir string) error {
	var damage *aof.DamageError
	var unfinished *datadir.UnfinishedError
	var taken *datadir.InTheWayError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; the data folder must belong to the user who runs the server", err)
	case errors.As(err, &taken):
		return fmt.Errorf("%w; unless a backup or repair to it is running, remove it, or choose another target", err)
	case errors.As(err, &unfinished):
		return fmt.Errorf("%w; remove it, and make the backup or repair again", err)
	case errors.As(err, &damage):
		return fmt.Errorf("%w; \"mayfly check %s\" tells more, \"mayfly repair %s <newdir>\" copies what is sound", err, dir, dir)
	}
	return err
}

// OpenToOthers says in one line what to do about a data folder that other users of the machine may list or
// change; empty if they may not.
func OpenToOthers(dir string) string {
	fi, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || fi.Mode().Perm()&0o077 == 0 {
		return ""
	}
	what := "list its files"
	if fi.Mode().Perm()&0o022 != 0 {
		what = "replace its files"
	}
	return fmt.Sprintf("the data folder has mode %04o: other users of this machine may %s; \"chmod 700 %s\" keeps them out", fi.Mode().Perm(), what, dir)
}
