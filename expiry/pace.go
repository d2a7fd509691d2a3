package expiry

import "time"

// MinEffort and MaxEffort bound active-expire-effort.
const (
	MinEffort = 1
	MaxEffort = 10
)

// pace is what an effort means.
type pace struct {
	sample     int           // items
	share      float64       // of one CPU
	acceptable float64       // share of dead in a sample
	fast       time.Duration // the longest fast cycle, and the shortest pause before one if time has run out
	pause      time.Duration // the pause before a fast cycle while all that dies is found
}

func paceOf(effort int) pace {
	e := min(max(effort, MinEffort), MaxEffort) - 1
	p := pace{
		sample:     20 + 5*e,
		share:      float64(25+2*e) / 100,
		acceptable: float64(10-e) / 100,
		fast:       time.Duration(1000+250*e) * time.Microsecond,
	}
	p.pause = time.Duration(p.acceptable * float64(Interval))
	return p
}

// full is what the account of time holds at most: the budget of one slow cycle.
func (p pace) full() time.Duration { return time.Duration(p.share * float64(Interval)) }
