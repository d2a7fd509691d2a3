package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "mayfly/commands" // the commands that rules name
	"mayfly/commands/engine"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

const aliceLine = "user alice on #2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90 ~a* resetchannels db=carts* -@all +get (~b resetchannels -@all +set)"

// lines returns the users as ACL LIST shows them.
func lines(c *Config) []string { return c.Users().Table().Lines() }

func TestUsersOfTheConfiguration(t *testing.T) {
	c := load(t, configFile(t, "requirepass secret\nuser alice on >alice ~a* +get db=carts* (~b +set)\nacl-pubsub-default allchannels\nacllog-max-len 5\n"))
	if got := lines(c); !slices.Contains(got, strings.Replace(aliceLine, "resetchannels", "&*", 1)) || c.Users().Authenticate("default", "secret") == nil || c.Users().Authenticate("alice", "alice") == nil {
		t.Errorf("got %q", got)
	}
	if !c.Users().AllChannels.Load() {
		t.Error("acl-pubsub-default has no effect")
	}
	if err := c.ConfigSet([][2]string{{"acl-pubsub-default", "resetchannels"}}); err != nil || c.Users().AllChannels.Load() {
		t.Error(err)
	}
	// A line for default is stronger than requirepass.
	c = load(t, configFile(t, "user default on nopass +get\nrequirepass secret\n"))
	if got := lines(c); got[0] != "user default on nopass resetchannels -@all +get" {
		t.Errorf("got %q", got)
	}
	for line, text := range map[string]string{
		"user alice +nosuch": "Unknown command or category name in ACL", "user alice foo": "Syntax error", "user": "no name", "user alice (~x": "Unmatched parenthesis",
	} {
		path := configFile(t, line+"\n")
		if _, err := Load([]string{path}); err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), path+":1") {
			t.Errorf("%s: %v", line, err)
		}
	}
	for text, want := range map[string]string{"user a on\nuser a off\n": "Duplicate user found", "user a on\naclfile f\n": "define either an ACL file or declare users directly"} {
		if _, err := Load([]string{configFile(t, text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFileOfUsers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "users.acl")
	write := func(text string) {
		t.Helper()
		drill.Check(t, os.WriteFile(path, []byte(text), 0o640))
	}
	write(aliceLine + "\n\n")
	c := load(t, "--dir", dir, "--aclfile", "users.acl", "--requirepass", "secret")
	if got := lines(c); !slices.Equal(got, []string{aliceLine, "user default on nopass ~* &* +@all"}) {
		t.Errorf("got %q", got)
	}
	var log strings.Builder
	if c.LogIgnored(zerolog.New(&log)); !strings.Contains(log.String(), "users.acl") || !strings.Contains(log.String(), "chmod 600") {
		t.Errorf("no warning of a file that others may read: %s", log.String())
	}
	if _, _, err := c.Users().Set("bob", []string{"on"}); err != nil || !c.Users().Unsaved.Load() {
		t.Fatal("the change is not unsaved", err)
	}
	if err := c.SaveUsers(); err != nil || c.Users().Unsaved.Load() {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Error(info, err)
	}
	want := lines(c)
	if err := c.LoadUsers(); err != nil || !slices.Equal(lines(c), want) {
		t.Errorf("%v: got %q, want %q", err, lines(c), want)
	}
	write("user bob on\nuser carol +nosuch\n")
	err = c.LoadUsers()
	if wrong := "ERR " + path + ":2: Unknown command or category name in ACL. WARNING: ACL errors detected, no change to the previously active ACL rules was performed"; err == nil || err.Error() != wrong || !slices.Equal(lines(c), want) {
		t.Errorf("got %v\nwant %s", err, wrong)
	}
	drill.Check(t, os.Remove(path))
	if err := c.LoadUsers(); err == nil || err.Error() != "ERR Error loading ACLs, opening file '"+path+"': no such file or directory" {
		t.Error(err)
	}
	if _, err := Load([]string{"--dir", dir, "--aclfile", path}); err == nil {
		t.Error("the start succeeds without the file")
	}
	if err := os.Mkdir(path, 0o700); err != nil { // it cannot be replaced
		t.Fatal(err)
	}
	if err := c.SaveUsers(); err == nil {
		t.Error("a folder was replaced")
	}
	if left, _ := filepath.Glob(path + "-*"); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	if err := load(t).SaveUsers(); err != engine.ErrNoUserFile {
		t.Error(err)
	}
}

func TestPasswordBesideFileOfUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.acl")
	drill.Check(t, os.WriteFile(path, []byte("user default on >file ~* &* +@all\n"), 0o600))
	c := load(t, "--aclfile", path, "--requirepass", "start")
	c.OnChange("timeout", func(*Settings) error { return errors.New("refused") })
	takes := func(passwords ...string) {
		t.Helper()
		for _, password := range []string{"start", "file", "set"} {
			if got := c.Users().Authenticate("default", password) != nil; got != slices.Contains(passwords, password) {
				t.Errorf("the password %s is taken: %v", password, got)
			}
		}
	}
	takes("file")
	// Whatever fails beside it, the password stays that of the file.
	if err := c.ConfigSet([][2]string{{"requirepass", "set"}, {"timeout", "7"}}); err == nil {
		t.Fatal("the change succeeds")
	}
	takes("file")
	drill.Check(t, c.ConfigSet([][2]string{{"requirepass", "set"}}))
	if takes("set"); !c.Users().Unsaved.Load() {
		t.Error("a restart loses the password, and nothing tells")
	}
	drill.Check(t, c.LoadUsers())
	takes("file")
	drill.Check(t, c.ConfigSet([][2]string{{"requirepass", ""}}))
	takes("start", "file", "set") // as in Redis it needs none
	drill.Check(t, c.SaveUsers(), c.LoadUsers())
	takes("start", "file", "set")
}

func TestRewriteUsers(t *testing.T) {
	const text = "# mine\nuser alice on >alice ~a* +get db=carts* (~b +set)\nmaxclients 5\n"
	path := configFile(t, text)
	c := load(t, path)
	rewrite := func(want string) {
		t.Helper()
		drill.Check(t, c.ConfigRewrite())
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
		}
		if again := load(t, path); !slices.Equal(lines(again), lines(c)) {
			t.Errorf("the file makes %q, want %q", lines(again), lines(c))
		}
	}
	rewrite(text) // to the byte
	if _, _, err := c.Users().Set("bob", []string{"on"}); err != nil {
		t.Fatal(err)
	}
	rewrite("# mine\nmaxclients 5\n" + rewriteSignature + "\n" + aliceLine + "\nuser bob on resetchannels -@all\n")
	if _, err := c.Users().Delete([]string{"bob", "alice"}); err != nil {
		t.Fatal(err)
	}
	drill.Check(t, c.ConfigSet([][2]string{{"requirepass", "x"}}))
	rewrite("# mine\nmaxclients 5\n" + rewriteSignature + "\nrequirepass x\n")
	if _, _, err := c.Users().Set("default", []string{"-@admin"}); err != nil {
		t.Fatal(err)
	}
	rewrite("# mine\nmaxclients 5\n" + rewriteSignature + "\nrequirepass x\n" + lines(c)[0] + "\n")
	// Names and patterns may be what a line has to quote.
	for name, rules := range map[string][]string{"": {`~"a`, `(~'b`, "+get)"}, `a"b\`: {"~\x01#"}} {
		if _, _, err := c.Users().Set(name, rules); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ConfigRewrite(); err != nil || !slices.Equal(lines(load(t, path)), lines(c)) {
		t.Errorf("%v: the file makes %q, want %q", err, lines(load(t, path)), lines(c))
	}
}
