package admin

import "testing"

func TestBackupFolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		path   string
		inside bool
	}{
		"monday":           {"/var/lib/monday", false},
		"backups/monday":   {"/var/lib/backups/monday", false},
		"../monday":        {"/var/monday", false},
		"/mnt/monday/":     {"/mnt/monday", false},
		"mayfly2":          {"/var/lib/mayfly2", false},
		"..mayfly":         {"/var/lib/..mayfly", false},
		"mayfly":           {"/var/lib/mayfly", true},
		"mayfly/in":        {"/var/lib/mayfly/in", true},
		"/var/lib/mayfly":  {"/var/lib/mayfly", true},
		"x/../mayfly/../.": {"/var/lib", false},
	} {
		if got, err := backupFolder("/var/lib/mayfly", path); got != want.path || (err != nil) != want.inside {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want.path)
		}
	}
}
