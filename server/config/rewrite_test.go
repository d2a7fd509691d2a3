package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// rewrite changes options of a server with this config file, rewrites the file and returns its text.
func rewrite(t *testing.T, text string, pairs ...[2]string) string {
	t.Helper()
	path := configFile(t, text)
	c := load(t, path)
	drill.Check(t, c.ConfigSet(pairs))
	drill.Check(t, c.ConfigRewrite())
	again := load(t, path)
	for _, pair := range pairs {
		if got, want := configured(t, again, pair[0]), configured(t, c, pair[0]); got != want {
			t.Errorf("%s is %q after a restart, was %q", pair[0], got, want)
		}
	}
	got, err := os.ReadFile(path)
	drill.Check(t, err)
	drill.Check(t, c.ConfigRewrite())
	if twice, err := os.ReadFile(path); err != nil || string(twice) != string(got) {
		t.Errorf("rewritten twice:\n%s\nonce:\n%s", twice, got)
	}
	return string(got)
}

func TestConfigRewrite(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		set          [][2]string
		after        string
	}{
		{"nothing has changed", "  TIMEOUT 7\n\n# no newline at the end", nil, "  TIMEOUT 7\n\n# no newline at the end"},
		{"in its place", "# first\ntimeout 7\n# last\n", [][2]string{{"timeout", "8"}}, "# first\ntimeout 8\n# last\n"},
		{"back to the default", "timeout 7\nport 7000\n", [][2]string{{"timeout", "0"}}, "timeout 0\nport 7000\n"},
		{"the last of several lines counts", "timeout 1\nport 7000\ntimeout 2", [][2]string{{"timeout", "3"}}, "timeout 3\nport 7000\n"},
		{"what the last line says", "timeout 1\ntimeout 2\n", [][2]string{{"timeout", "2"}}, "timeout 1\ntimeout 2\n"},
		{"added", "port 7000", [][2]string{{"timeout", "8"}, {"requirepass", `a "b"`}, {"maxmemory", "1gb"}},
			"port 7000\n" + rewriteSignature + "\nrequirepass \"a \\\"b\\\"\"\ntimeout 8\nmaxmemory 1073741824\n"},
		{"added below what was added", rewriteSignature + "\ntimeout 1\n", [][2]string{{"maxclients", "5"}},
			rewriteSignature + "\ntimeout 1\nmaxclients 5\n"},
		{"several lines make one value", "client-output-buffer-limit pubsub 1 2 3\nclient-output-buffer-limit normal 4 5 6\n", [][2]string{{"timeout", "8"}},
			"client-output-buffer-limit pubsub 1 2 3\nclient-output-buffer-limit normal 4 5 6\n" + rewriteSignature + "\ntimeout 8\n"},
		{"options of Redis that stand for themselves", "save \"\"\nappendonly yes\n", [][2]string{{"max-value-size", "1mb"}},
			"save \"\"\nappendonly yes\n" + rewriteSignature + "\nmax-value-size 1048576\n"},
		{"what must be the value of another", "proto-max-bulk-len 512mb\nmax-value-size 512mb\n", [][2]string{{"max-value-size", "1mb"}}, "max-value-size 1048576\n"},
		{"another name", "busy-reply-threshold 5\nport 7000\n", [][2]string{{"lua-time-limit", "7"}}, "busy-reply-threshold 7\nport 7000\n"},
		{"the first name", "port 7000\n", [][2]string{{"busy-reply-threshold", "7"}}, "port 7000\n" + rewriteSignature + "\nlua-time-limit 7\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rewrite(t, tt.before, tt.set...); got != tt.after {
				t.Errorf("got\n%s\nwant\n%s", got, tt.after)
			}
		})
	}
}

// A file of users that is named within the data folder stays so.
func TestConfigRewriteKeepsAPathInTheFolder(t *testing.T) {
	dir := t.TempDir()
	drill.Check(t, os.WriteFile(filepath.Join(dir, "users.acl"), []byte("user default on nopass ~* &* +@all\n"), 0o600))
	before := "dir " + dir + "\naclfile users.acl\n"
	if got := rewrite(t, before); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
}

func TestConfigRewriteWithoutFile(t *testing.T) {
	const want = "ERR The server is running without a config file"
	if err := load(t).ConfigRewrite(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A failed rewrite leaves the file unchanged, and no other file.
func TestConfigRewriteFails(t *testing.T) {
	path := configFile(t, "timeout 1\n")
	c := load(t, path)
	drill.Check(t, c.ConfigSet([][2]string{{"timeout", "2"}}))
	drill.Check(t, os.WriteFile(path, []byte("nonsense 1\n"), 0o600))
	if err := c.ConfigRewrite(); err == nil || !strings.HasPrefix(err.Error(), "ERR Rewriting config file: ") {
		t.Errorf("a file that cannot be read back was rewritten: %v", err)
	}
	drill.Check(t, os.RemoveAll(filepath.Dir(path)))
	if err := c.ConfigRewrite(); err == nil || err.Error() != "ERR Rewriting config file: no such file or directory" {
		t.Errorf("a file was written into a folder that is gone: %v", err)
	}
}

// A rewrite keeps the permissions of the file and the link that names it.
func TestConfigRewriteKeepsTheFileItself(t *testing.T) {
	path := configFile(t, "timeout 1\n")
	drill.Check(t, os.Chmod(path, 0o640))
	link := filepath.Join(t.TempDir(), "link.conf")
	drill.Check(t, os.Symlink(path, link))
	c := load(t, link)
	drill.Check(t, c.ConfigSet([][2]string{{"timeout", "2"}}))
	drill.Check(t, c.ConfigRewrite())
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became a file: %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}
}
