package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mayfly/commands"
)

// events is the option notify-keyspace-events.
type events struct{ p *commands.Events }

func (v events) Set(text string) error {
	e, err := commands.ParseEvents(text)
	if err != nil {
		return err
	}
	*v.p = e
	return nil
}

func (v events) String() string { return v.p.String() }
func (v events) legal() string  { return "any of Ag$lshzxeKEtmdn" }

// OutputLimits is the option client-output-buffer-limit. Only that of subscribers counts, which is also
// that of who monitors: other clients are sent nothing but replies, and no command is carried out for a client that does not take
// them.
type OutputLimits struct{ normal, replica, pubsub outputLimit }

// outputLimit bounds what may be under way to a client.
type outputLimit struct {
	hard     int           // bytes; more is not tolerated; 0: no limit
	soft     int           // bytes; more is tolerated for softTime; 0: no limit
	softTime time.Duration // whole seconds
}

// outputLimits reads and writes OutputLimits in Redis' notation: class hard soft seconds for one or
// several classes of clients. Those that are not named stay as they are.
type outputLimits struct{ p *OutputLimits }

func (v outputLimits) Set(text string) error {
	words := strings.Fields(text)
	if len(words)%4 != 0 {
		//lint:ignore ST1005 the words are Redis'
		return errors.New("Wrong number of arguments in buffer limit configuration.")
	}
	next := *v.p
	for ; len(words) > 0; words = words[4:] {
		class := next.class(words[0])
		if class == nil {
			//lint:ignore ST1005 the words are Redis'
			return errors.New("Invalid client class specified in buffer limit configuration.")
		}
		hard, hardErr := parseMemory(words[1])
		soft, softErr := parseMemory(words[2])
		seconds, err := strconv.ParseInt(words[3], 10, 32)
		if hardErr != nil || softErr != nil || err != nil || seconds < 0 {
			//lint:ignore ST1005 the words are Redis'
			return errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		*class = outputLimit{int(hard), int(soft), time.Duration(seconds) * time.Second}
	}
	*v.p = next
	return nil
}

// class is the limit of a class of clients; nil if there is no such class.
func (l *OutputLimits) class(name string) *outputLimit {
	switch strings.ToLower(name) {
	case "normal":
		return &l.normal
	case "slave", "replica":
		return &l.replica
	case "pubsub":
		return &l.pubsub
	}
	return nil
}

func (v outputLimits) String() string {
	return fmt.Sprintf("normal %v slave %v pubsub %v", v.p.normal, v.p.replica, v.p.pubsub)
}

func (l outputLimit) String() string {
	return fmt.Sprintf("%d %d %d", l.hard, l.soft, l.softTime/time.Second)
}

func (v outputLimits) legal() string {
	return "<normal, replica or pubsub> <hard limit> <soft limit> <soft seconds>, for one or several classes"
}
