package config

import (
	"mayfly/commands/access"
	"mayfly/commands/engine"
)

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

// LoadUsers replaces the users by those of the file of users.
func (c *Config) LoadUsers() error { return engine.ErrNoUserFile }

// SaveUsers writes the file of users.
func (c *Config) SaveUsers() error { return engine.ErrNoUserFile }
