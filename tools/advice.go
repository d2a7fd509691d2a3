package tools

import (
	"errors"
	"fmt"

	"mayfly/keyspace/aof"
)

// Advise adds to an error about damage in a data folder what to do about it.
func Advise(err error, dir string) error {
	var damage *aof.DamageError
	if !errors.As(err, &damage) {
		return err
	}
	return fmt.Errorf("%w; \"mayfly check %s\" tells more, \"mayfly repair %s <newdir>\" copies what is sound", err, dir, dir)
}
