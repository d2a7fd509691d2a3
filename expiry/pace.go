package expiry

import "time"

// MinEffort and MaxEffort bound active-expire-effort.
const (
	MinEffort = 1
	MaxEffort = 10
)

// rest is how long a cycle leaves the processor to others after a stretch of work. Timers are not
// finer while a process has nothing else to do.
const rest = time.Millisecond

// pace is what an effort means.
type pace struct {
	sample     int           // dead items
	share      float64       // of one CPU
	acceptable float64       // share of dead
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

// stretch is how long a cycle works after a rest: so long that it has its share of the time, whatever
// the rest has become. Where all processors are wanted that is longer than was asked for.
func (p pace) stretch(rest time.Duration) time.Duration {
	return min(time.Duration(p.share/(1-p.share)*float64(rest)), p.fast)
}

// full is what the account of time holds at most: the budget of one slow cycle.
func (p pace) full() time.Duration { return time.Duration(p.share * float64(Interval)) }
