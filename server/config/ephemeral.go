package config

import (
	"errors"
	"fmt"
	"strings"
)

// CheckEphemeral returns an error, one line for each mistake, if the options for tests contradict each other,
// or others. A folder of real data never meets a clock that clients move: what it holds was written by the
// system's.
func (s *Settings) CheckEphemeral() error {
	var mistakes []string
	if s.ManualClock && !s.Ephemeral {
		mistakes = append(mistakes, `option clock with value "manual" needs ephemeral yes: a folder of real data never meets a clock that clients move`)
	}
	if s.ClockStart != 0 && !s.ManualClock {
		mistakes = append(mistakes, fmt.Sprintf(`option clock-start with value "%d" needs clock manual: the system's clock has its own time`, s.ClockStart))
	}
	if s.Ephemeral && s.Cluster.ID != "" {
		mistakes = append(mistakes, fmt.Sprintf(`option ephemeral with value "yes" does not go with cluster-id, which is %q: a node keeps what it has acknowledged`, s.Cluster.ID))
	}
	if mistakes == nil {
		return nil
	}
	return errors.New(strings.Join(mistakes, "\n"))
}
