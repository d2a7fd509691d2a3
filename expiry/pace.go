package expiry

import "time"

// MinEffort and MaxEffort bound active-expire-effort.
const (
	MinEffort = 1
	MaxEffort = 10
)

// rest is how long a cycle leaves the processor to others after a burst of work. In a process that does
// nothing else, timers are no finer.
const rest = time.Millisecond

// pace is the meaning of an effort.
type pace struct {
	sample     int           // dead items
	share      float64       // of one CPU
	acceptable float64       // share of dead items
	fast       time.Duration // the longest fast cycle, and the pause before one if time has run out
	pause      time.Duration // before a fast cycle while all dead items are found
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

// burst is how long a cycle works after a rest, so that work has its share of the time. A rest may have been
// longer than asked for, if others want all processors.
func (p pace) burst(rest time.Duration) time.Duration {
	return min(time.Duration(p.share/(1-p.share)*float64(rest)), p.fast)
}

// full is the largest budget: the work of one slow cycle.
func (p pace) full() time.Duration { return time.Duration(p.share * float64(Interval)) }
