package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/redisfmt"

	"github.com/rs/zerolog"
)

// Users and their rights are in lines of the configuration or in a file of their own (aclfile), not in both.

// errBothUsers is why the start is refused with both, in the words of Redis.
//
//lint:ignore ST1005 the words of Redis
var errBothUsers = errors.New("Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid. " +
	"This setup is very likely to lead to configuration errors and security holes, please define either an ACL file or declare users directly in your redis.conf, but not both.")

// newUsers returns users of which there is only the default. A program without the table of commands knows no
// rules for them.
func newUsers() *access.Users {
	if engine.Catalogue == nil {
		return access.NewUsers(access.NewCatalogue(nil, nil))
	}
	return access.NewUsers(engine.Catalogue)
}

// Users returns the users of the server.
func (c *Config) Users() *access.Users { return c.users }

// applyUserOptions gives users what the options say of them.
func applyUserOptions(us *access.Users, s *Settings) error {
	us.AllChannels.Store(s.AllChannels)
	us.Log.SetLength(s.ACLLogLen)
	if s.ACLFile != "" {
		return nil // at the start and in ACL LOAD only the file counts
	}
	return us.SetDefaultPassword(s.RequirePass)
}

// beginUsers makes the users follow the options.
func (c *Config) beginUsers(s *Settings) {
	_ = applyUserOptions(c.users, s) // the rules are legal
	c.OnChange("requirepass", func(s *Settings) error {
		if err := c.users.SetDefaultPassword(s.RequirePass); err != nil {
			return err
		}
		if s.ACLFile != "" {
			c.users.Unsaved.Store(true) // ACL LOAD and a restart lose it
		}
		return nil
	})
	c.OnChange("acllog-max-len", func(s *Settings) error {
		c.users.Log.SetLength(s.ACLLogLen)
		return nil
	})
	c.OnChange("acl-pubsub-default", func(s *Settings) error {
		c.users.AllChannels.Store(s.AllChannels)
		return nil
	})
}

// takeUser takes a line of a user: the name and the rules.
func (l *loader) takeUser(words []string, origin string) {
	if len(words) == 1 {
		words = strings.Fields(words[0]) // of the environment
	}
	if len(words) == 0 {
		l.fail(nil, "user %s has no name", origin)
		return
	}
	// Whether a user comes twice is known when all lines are.
	if err := newUsers().LoadLines([][]string{words}); err != nil {
		l.fail(nil, "user %s: %v", origin, err)
		return
	}
	l.includesUsers = l.includesUsers || l.depth > 0
	l.settings.UserLines = append(l.settings.UserLines, slices.Clone(words))
}

// loadUsers reads the users at the start.
func (c *Config) loadUsers(s *Settings) error {
	switch {
	case s.ACLFile != "" && len(s.UserLines) > 0:
		return errBothUsers
	case s.ACLFile == "" && len(s.UserLines) == 0:
		return nil
	case s.ACLFile == "":
		return c.users.LoadLines(s.UserLines)
	}
	return c.readUsers(s.ACLFile)
}

// readUsers replaces the users by those of a file.
func (c *Config) readUsers(path string) error {
	info, err := os.Stat(path)
	var text []byte
	if err == nil {
		if info.Size() > access.MostFile {
			return fmt.Errorf("the file of users %s has %d bytes: legal are up to %d", path, info.Size(), access.MostFile)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		if code, ok := errors.AsType[syscall.Errno](err); ok {
			err = code
		}
		//lint:ignore ST1005 the words of Redis
		return fmt.Errorf("Error loading ACLs, opening file '%s': %w", path, err)
	}
	_, err = c.users.Load(path, string(text))
	return err
}

// LoadUsers replaces the users by those of the file of users. Errors are in Redis' words.
func (c *Config) LoadUsers() error {
	path := c.Settings().ACLFile
	if path == "" {
		return engine.ErrNoUserFile
	}
	if err := c.readUsers(path); err != nil {
		return engine.Error("ERR " + err.Error())
	}
	return nil
}

// SaveUsers writes the file of users, entirely or not at all.
func (c *Config) SaveUsers() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := c.current.Load().ACLFile
	if path == "" {
		return engine.ErrNoUserFile
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	text := strings.Join(c.users.Table().Lines(), "\n") + "\n"
	if err := replaceFile(path, []byte(text), mode); err != nil {
		return fmt.Errorf("cannot write the file of users %s: %w", path, err)
	}
	c.users.Unsaved.Store(false)
	return nil
}

// warnOfReaders warns of files with hashes of passwords that others may read.
func (c *Config) warnOfReaders(log zerolog.Logger) {
	s := c.Settings()
	path := s.ACLFile
	if path == "" && len(s.UserLines) > 0 {
		path = s.ConfigFile
	}
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn().Str("file", path).Str("mode", info.Mode().Perm().String()).Msg("other accounts may read the hashes of users' passwords: chmod 600")
	}
}

// isUserLine reports whether a line of a config file is that of a user.
func isUserLine(line string) bool {
	words, ok := redisfmt.SplitLine(strings.TrimSpace(line))
	return ok && len(words) > 0 && strings.EqualFold(words[0], "user")
}

// staleUsers returns the lines of users that a config file is to have, nil if it says the same. l has read
// the file, and said is what it says.
func (s *Settings) staleUsers(l *loader, said *Settings) ([]string, error) {
	if s.ACLFile != "" || s.users == nil {
		return nil, nil
	}
	// With the options as they will be in the file.
	plain, now := newUsers(), s.users.Table().Lines()
	if err := applyUserOptions(plain, s); err != nil {
		return nil, err
	}
	first := plain.Table().Default().Line()
	if err := plain.LoadLines(said.UserLines); err == nil && slices.Equal(plain.Table().Lines(), now) {
		return nil, nil
	}
	if l.includesUsers {
		return nil, errors.New("an included file has users, which this one cannot change")
	}
	lines := []string{}
	for _, line := range now {
		if line != first {
			words := strings.Split(line, " ")
			for i := range words {
				words[i] = quoted(words[i])
			}
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines, nil
}
