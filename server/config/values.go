package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"mayfly/commands"
)

// value reads and writes one option's value in [Settings]. It is a flag.Value too. The errors of Set are
// in Redis' words, for the replies of CONFIG SET.
type value interface {
	Set(text string) error
	String() string
	legal() string // describes the legal values, without the unit; empty: any
}

var (
	errNotInteger = errors.New("argument couldn't be parsed into an integer")
	errNotMemory  = errors.New("argument must be a memory value")
	errNotYesNo   = errors.New("argument must be 'yes' or 'no'")
	errEmpty      = errors.New("argument must not be empty")
	errWordCount  = errors.New("wrong number of arguments")
	errImmutable  = errors.New("can't set immutable config")
	errDuplicate  = errors.New("duplicate parameter")
)

// number is a whole number of units, such as time.Second, between two bounds.
type number[T ~int | ~int64] struct {
	p        *T
	unit     T
	min, max int64
}

func (v number[T]) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text { // Redis takes neither 010 nor +10
		return errNotInteger
	}
	if err := within(n, v.min, v.max); err != nil {
		return err
	}
	*v.p = T(n) * v.unit
	return nil
}

func (v number[T]) String() string { return strconv.FormatInt(int64(*v.p/v.unit), 10) }
func (v number[T]) legal() string  { return fmt.Sprintf("%d to %d", v.min, v.max) }

func count(p *int, min, max int64) value { return number[int]{p, 1, min, max} }

// automatic is a number, or auto for -1: the server chooses.
type automatic struct {
	p   *int
	max int64
}

const auto = "auto"

func (v automatic) Set(text string) error {
	if strings.EqualFold(text, auto) {
		*v.p = -1
		return nil
	}
	return count(v.p, 0, v.max).Set(text)
}

func (v automatic) String() string {
	if *v.p < 0 {
		return auto
	}
	return strconv.Itoa(*v.p)
}

func (v automatic) legal() string { return fmt.Sprintf("%s, 0 to %d", auto, v.max) }

func within(n, min, max int64) error {
	if n < min || n > max {
		return fmt.Errorf("argument must be between %d and %d inclusive", min, max)
	}
	return nil
}

// octal is a file mode such as 770.
type octal struct{ p *uint32 }

func (v octal) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return errNotInteger
	}
	if n > 0o777 {
		return errors.New("argument must be between 0 and 777 inclusive")
	}
	*v.p = uint32(n)
	return nil
}

func (v octal) String() string { return strconv.FormatUint(uint64(*v.p), 8) }
func (v octal) legal() string  { return "0 to 777" }

// memory is a number of bytes in Redis' notation: 1k is 1000 bytes, 1kb 1024, and so on.
type memory[T ~int | ~int64] struct {
	p        *T
	min, max int64
}

var memoryUnits = []struct {
	suffix string
	bytes  int64
}{
	{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9},
	{"b", 1}, {"", 1},
}

func (v memory[T]) Set(text string) error {
	n, err := parseMemory(text)
	if err != nil {
		return err
	}
	if err := within(n, v.min, v.max); err != nil {
		return err
	}
	*v.p = T(n)
	return nil
}

func (v memory[T]) String() string { return strconv.FormatInt(int64(*v.p), 10) }
func (v memory[T]) legal() string  { return fmt.Sprintf("%d to %d", v.min, v.max) }

func parseMemory(text string) (int64, error) {
	for _, u := range memoryUnits {
		digits, ok := strings.CutSuffix(strings.ToLower(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.bytes) {
			return 0, errNotMemory
		}
		return int64(n) * u.bytes, nil
	}
	return 0, errNotMemory
}

// memoryOrShare is memory, or per cent of another amount, stored as a negative number.
type memoryOrShare struct{ p *int64 }

var errNotMemoryOrShare = errors.New("argument must be a memory or percent value")

func (v memoryOrShare) Set(text string) error {
	if digits, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseUint(digits, 10, 31)
		switch {
		case err != nil || strconv.FormatUint(n, 10) != digits:
			return errNotMemoryOrShare
		case n > 100:
			return errors.New("percentage argument must be less or equal to 100")
		}
		*v.p = -int64(n)
		return nil
	}
	n, err := parseMemory(text)
	if err != nil {
		return errNotMemoryOrShare
	}
	*v.p = n
	return nil
}

func (v memoryOrShare) String() string {
	if *v.p < 0 {
		return strconv.FormatInt(-*v.p, 10) + "%"
	}
	return strconv.FormatInt(*v.p, 10)
}

func (v memoryOrShare) legal() string {
	return fmt.Sprintf("0%% to 100%% of maxmemory, or 0 to %d", math.MaxInt64)
}

// yesNo is a switch.
type yesNo struct{ p *bool }

func (v yesNo) Set(text string) error {
	switch strings.ToLower(text) {
	case "yes":
		*v.p = true
	case "no":
		*v.p = false
	default:
		return errNotYesNo
	}
	return nil
}

func (v yesNo) String() string {
	if *v.p {
		return "yes"
	}
	return "no"
}
func (v yesNo) legal() string { return "yes, no" }

// oneOf is a choice among names. Several names may mean the same; String returns the first.
type oneOf[T comparable] struct {
	p       *T
	choices []choice[T]
}

type choice[T comparable] struct {
	name  string
	means T
}

func (v oneOf[T]) Set(text string) error {
	for _, c := range v.choices {
		if strings.EqualFold(text, c.name) {
			*v.p = c.means
			return nil
		}
	}
	return errors.New("argument(s) must be one of the following: " + v.legal())
}

func (v oneOf[T]) String() string {
	for _, c := range v.choices {
		if c.means == *v.p {
			return c.name
		}
	}
	return ""
}

func (v oneOf[T]) legal() string {
	names := make([]string, len(v.choices))
	for i, c := range v.choices {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// text is any string; needed refuses the empty one.
type text struct {
	p      *string
	needed bool
}

func (v text) Set(s string) error {
	if s == "" && v.needed {
		return errEmpty
	}
	*v.p = s
	return nil
}

func (v text) String() string { return *v.p }
func (v text) legal() string {
	if v.needed {
		return "any but the empty string"
	}
	return ""
}

// words is a list separated by blanks.
type words struct {
	p   *[]string
	max int
}

func (v words) Set(s string) error {
	list := strings.Fields(s)
	if len(list) < 1 || len(list) > v.max {
		return errWordCount
	}
	*v.p = list
	return nil
}

func (v words) String() string { return strings.Join(*v.p, " ") }
func (v words) legal() string  { return fmt.Sprintf("1 to %d", v.max) }

// fixed is an option of Redis that has only one value here. Clients can read it, and a configuration may set
// just that value.
type fixed string

func (v fixed) Set(s string) error {
	if !strings.EqualFold(s, string(v)) {
		return errors.New("argument must be " + strconv.Quote(string(v)))
	}
	return nil
}

func (v fixed) String() string { return string(v) }
func (v fixed) legal() string  { return "only " + strconv.Quote(string(v)) }

// mirror is a number of bytes that another option sets, under its name in Redis.
type mirror struct {
	p     *int
	other string
}

func (v mirror) Set(s string) error {
	if n, err := parseMemory(s); err != nil || n != int64(*v.p) {
		return errors.New("argument must be " + v.legal())
	}
	return nil
}

func (v mirror) String() string { return strconv.Itoa(*v.p) }
func (v mirror) legal() string  { return "the value of " + v.other }

// hostPort is an address to listen on, such as 127.0.0.1:9121 or :9121; empty for none.
type hostPort struct{ p *string }

func (v hostPort) Set(text string) error {
	if text != "" {
		_, port, err := net.SplitHostPort(text)
		if err != nil {
			return errors.New("argument must be host:port")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("argument must be host:port, with a port from 1 to 65535")
		}
	}
	*v.p = text
	return nil
}

func (v hostPort) String() string { return *v.p }
func (v hostPort) legal() string  { return "host:port, or empty" }

// events is the option notify-keyspace-events.
type events struct{ p *commands.EventClasses }

func (v events) Set(text string) error {
	e, err := commands.ParseEventClasses(text)
	if err != nil {
		return err
	}
	*v.p = e
	return nil
}

func (v events) String() string { return v.p.String() }
func (v events) legal() string  { return "any of Ag$lshzxeKEtmdn" }

// OutputLimits is the option client-output-buffer-limit. Only PubSub has an effect, for subscribers and
// monitors: other clients get only replies, and no command runs for a client that does not take them.
type OutputLimits struct{ Normal, Replica, PubSub OutputLimit }

// OutputLimit bounds the unsent messages of a client.
type OutputLimit struct {
	Hard     int           // bytes; more disconnects at once; 0: no limit
	Soft     int           // bytes; more for SoftTime disconnects; 0: no limit
	SoftTime time.Duration // whole seconds
}

// outputLimits reads and writes OutputLimits in Redis' notation: class, hard, soft and seconds for one or
// several classes of clients. Other classes keep their limits.
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
		*class = OutputLimit{int(hard), int(soft), time.Duration(seconds) * time.Second}
	}
	*v.p = next
	return nil
}

// class returns the limit of a class of clients; nil if there is no such class.
func (l *OutputLimits) class(name string) *OutputLimit {
	switch strings.ToLower(name) {
	case "normal":
		return &l.Normal
	case "slave", "replica":
		return &l.Replica
	case "pubsub":
		return &l.PubSub
	}
	return nil
}

func (v outputLimits) String() string {
	return fmt.Sprintf("normal %v slave %v pubsub %v", v.p.Normal, v.p.Replica, v.p.PubSub)
}

func (l OutputLimit) String() string {
	return fmt.Sprintf("%d %d %d", l.Hard, l.Soft, l.SoftTime/time.Second)
}

func (v outputLimits) legal() string {
	return "<normal, replica or pubsub> <hard limit> <soft limit> <soft seconds>, for one or several classes"
}
