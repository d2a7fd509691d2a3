package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry/clock"
	"mayfly/redisfmt"
)

// value reads and writes one option's value in [Settings]. It is a flag.Value too. The errors of Set are
// in Redis' words, for the replies of CONFIG SET.
type value interface {
	Set(text string) error
	String() string
	legal() string // describes the legal values, without the unit; empty: any
}

// A kind says how the options of one kind are read and written.
type kind[T any] struct {
	parse  func(text string) (T, error)
	format func(T) string
	values string // describes the legal ones
}

// of returns the value at p.
func (k kind[T]) of(p *T) value { return kindValue[T]{k, p} }

type kindValue[T any] struct {
	kind[T]
	p *T
}

func (v kindValue[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.p = parsed
	}
	return err
}

func (v kindValue[T]) String() string { return v.format(*v.p) }
func (v kindValue[T]) legal() string  { return v.values }

var (
	errNotInteger = errors.New("argument couldn't be parsed into an integer")
	errNotMemory  = errors.New("argument must be a memory value")
	errNotYesNo   = errors.New("argument must be 'yes' or 'no'")
	errNotVersion = errors.New("argument must be a version such as 7.4.0")
	errEmpty      = errors.New("argument must not be empty")
	errWordCount  = errors.New("wrong number of arguments")
	errImmutable  = errors.New("can't set immutable config")
	errDuplicate  = errors.New("duplicate parameter")
)

// number is a whole number of units, such as time.Second, between two bounds.
func number[T ~int | ~int64](unit T, min, max int64) kind[T] {
	return kind[T]{
		parse: func(text string) (T, error) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || strconv.FormatInt(n, 10) != text { // Redis takes neither 010 nor +10
				return 0, errNotInteger
			}
			return T(n) * unit, within(n, min, max)
		},
		format: func(v T) string { return strconv.FormatInt(int64(v/unit), 10) },
		values: fmt.Sprintf("%d to %d", min, max),
	}
}

// orZero is number, but 0 is legal too.
func orZero[T ~int | ~int64](unit T, min, max int64) kind[T] {
	k := number(unit, min, max)
	parse := k.parse
	k.parse = func(text string) (T, error) {
		if text == "0" {
			return 0, nil
		}
		v, err := parse(text)
		if err != nil && err != errNotInteger {
			err = fmt.Errorf("argument must be 0 or between %d and %d inclusive", min, max)
		}
		return v, err
	}
	k.values = "0, " + k.values
	return k
}

func count(min, max int64) kind[int] { return number(1, min, max) }

func within(n, min, max int64) error {
	if n < min || n > max {
		return fmt.Errorf("argument must be between %d and %d inclusive", min, max)
	}
	return nil
}

// redisVersion is a version of Redis.
var redisVersion = kind[string]{
	parse: func(text string) (string, error) {
		parts := strings.Split(text, ".")
		for _, part := range parts {
			if n, err := strconv.ParseUint(part, 10, 16); err != nil || strconv.FormatUint(n, 10) != part || len(parts) != 3 {
				return "", errNotVersion
			}
		}
		return text, nil
	},
	format: func(v string) string { return v },
	values: "three numbers with points",
}

const auto = "auto"

// port is a TCP port, or auto: -1 until the server listens. isAuto remembers the word for the config file.
type port struct {
	number *int
	isAuto *bool
}

var portNumber = automatic(math.MaxUint16)

func (p port) Set(text string) error {
	number, err := portNumber.parse(text)
	if err == nil {
		*p.number, *p.isAuto = number, number < 0
	}
	return err
}

func (p port) String() string { return portNumber.format(*p.number) }
func (p port) legal() string  { return portNumber.values }

// automatic is a number, or auto for -1: the server chooses.
func automatic(max int64) kind[int] { return orAuto(count(0, max)) }

// orAuto is numbers, none of which is negative, or auto for -1.
func orAuto[T ~int | ~int64](numbers kind[T]) kind[T] {
	return kind[T]{
		parse: func(text string) (T, error) {
			if strings.EqualFold(text, auto) {
				return -1, nil
			}
			return numbers.parse(text)
		},
		format: func(n T) string {
			if n < 0 {
				return auto
			}
			return numbers.format(n)
		},
		values: auto + ", " + numbers.values,
	}
}

// namingAuto is a kind of [orAuto] whose errors name what is legal. Those of options that Redis has, without
// the word, are Redis' errors.
func namingAuto[T ~int | ~int64](k kind[T]) kind[T] {
	parse := k.parse
	k.parse = func(text string) (T, error) {
		n, err := parse(text)
		if err != nil {
			err = errors.New("argument must be " + k.values)
		}
		return n, err
	}
	return k
}

// fileMode is an octal number such as 770.
var fileMode = kind[uint32]{
	parse: func(text string) (uint32, error) {
		n, err := strconv.ParseUint(text, 8, 32)
		switch {
		case err != nil:
			return 0, errNotInteger
		case n > 0o777:
			return 0, errors.New("argument must be between 0 and 777 inclusive")
		}
		return uint32(n), nil
	},
	format: func(mode uint32) string { return strconv.FormatUint(uint64(mode), 8) },
	values: "0 to 777",
}

// moment is a moment in ms, or empty for 0.
var moment = kind[int64]{
	parse: func(text string) (int64, error) {
		if text == "" {
			return 0, nil
		}
		ms, ok := clock.ParseMoment(text)
		if !ok {
			return 0, errors.New("argument must be milliseconds since 1970, or a time such as 2030-01-01T00:00:00Z, up to the year 9999")
		}
		return ms, nil
	},
	format: func(ms int64) string {
		if ms == 0 {
			return ""
		}
		return strconv.FormatInt(ms, 10)
	},
	values: "empty, milliseconds since 1970, or a time such as 2030-01-01T00:00:00Z, up to the year 9999",
}

// memory is a number of bytes in Redis' notation: 1k is 1000 bytes, 1kb 1024, and so on.
func memory[T ~int | ~int64](min, max int64) kind[T] {
	k := number[T](1, min, max)
	k.parse = func(text string) (T, error) {
		n, err := parseMemory(text)
		if err == nil {
			err = within(n, min, max)
		}
		return T(n), err
	}
	return k
}

var memoryUnits = []struct {
	suffix string
	bytes  int64
}{
	{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9},
	{"b", 1}, {"", 1},
}

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

// memoryOrShare is memory, or per cent of another amount as a negative number.
var memoryOrShare = kind[int64]{
	parse: func(text string) (int64, error) {
		errKind := errors.New("argument must be a memory or percent value")
		if digits, ok := strings.CutSuffix(text, "%"); ok {
			n, err := strconv.ParseUint(digits, 10, 31)
			switch {
			case err != nil || strconv.FormatUint(n, 10) != digits:
				return 0, errKind
			case n > 100:
				return 0, errors.New("percentage argument must be less or equal to 100")
			}
			return -int64(n), nil
		}
		n, err := parseMemory(text)
		if err != nil {
			return 0, errKind
		}
		return n, nil
	},
	format: func(n int64) string {
		if n < 0 {
			return strconv.FormatInt(-n, 10) + "%"
		}
		return strconv.FormatInt(n, 10)
	},
	values: fmt.Sprintf("0%% to 100%% of maxmemory, or 0 to %d", math.MaxInt64),
}

// choice is a name and what it means.
type choice[T comparable] struct {
	name  string
	means T
}

// oneOf is a choice among names. Several names may mean the same; the first one is shown.
func oneOf[T comparable](choices []choice[T]) kind[T] {
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = c.name
	}
	legal := strings.Join(names, ", ")
	return kind[T]{
		parse: func(text string) (none T, err error) {
			for _, c := range choices {
				if strings.EqualFold(text, c.name) {
					return c.means, nil
				}
			}
			return none, errors.New("argument(s) must be one of the following: " + legal)
		},
		format: func(v T) string {
			for _, c := range choices {
				if c.means == v {
					return c.name
				}
			}
			return ""
		},
		values: legal,
	}
}

// yesNo is a switch.
var yesNo = func() kind[bool] {
	k := oneOf([]choice[bool]{{"yes", true}, {"no", false}})
	parse := k.parse
	k.parse = func(text string) (bool, error) {
		on, err := parse(text)
		if err != nil {
			err = errNotYesNo
		}
		return on, err
	}
	return k
}()

// asIs is any string.
var asIs = kind[string]{
	parse:  func(s string) (string, error) { return s, nil },
	format: func(s string) string { return s },
}

// filled is any string but the empty one.
var filled = kind[string]{
	parse: func(s string) (string, error) {
		if s == "" {
			return "", errEmpty
		}
		return s, nil
	},
	format: asIs.format,
	values: "any but the empty string",
}

// words is a list separated by blanks.
func words(max int) kind[[]string] {
	return kind[[]string]{
		parse: func(s string) ([]string, error) {
			list := strings.Fields(s)
			if len(list) < 1 || len(list) > max {
				return nil, errWordCount
			}
			return list, nil
		},
		format: func(list []string) string { return strings.Join(list, " ") },
		values: fmt.Sprintf("1 to %d", max),
	}
}

// percentiles is a list of numbers from 0 to 100, separated by single blanks. The errors are Redis'.
var percentiles = kind[[]float64]{
	parse: func(text string) ([]float64, error) {
		if text == "" {
			return nil, nil
		}
		words := strings.Split(text, " ")
		list := make([]float64, len(words))
		for i, word := range words {
			number, ok := redisfmt.ParseFloat(word)
			if !ok {
				//lint:ignore ST1005 the words are Redis'
				return nil, errors.New("Invalid latency-tracking-info-percentiles parameters")
			}
			if list[i], _ = number.Float64(); list[i] < 0 || list[i] > 100 {
				return nil, errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
			}
		}
		return list, nil
	},
	format: func(list []float64) string {
		words := make([]string, len(list))
		for i, p := range list {
			words[i] = engine.FormatPercentile(p)
		}
		return strings.Join(words, " ")
	},
	values: "0 to 100",
}

// optionalWords is words, or none.
func optionalWords(max int) kind[[]string] {
	k := words(max)
	parse := k.parse
	k.parse = func(s string) ([]string, error) {
		if strings.TrimSpace(s) == "" {
			return nil, nil
		}
		return parse(s)
	}
	k.values = fmt.Sprintf("0 to %d", max)
	return k
}

// hostPort is an address to listen on, such as 127.0.0.1:9121 or :9121; empty for none.
var hostPort = kind[string]{
	parse: func(text string) (string, error) {
		if text == "" {
			return text, nil
		}
		_, port, err := net.SplitHostPort(text)
		if err != nil {
			return "", errors.New("argument must be host:port")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", errors.New("argument must be host:port, with a port from 1 to 65535")
		}
		return text, nil
	},
	format: asIs.format,
	values: "host:port, or empty",
}

// eventClasses is the option notify-keyspace-events.
var eventClasses = kind[events.Classes]{
	parse: events.Parse, format: events.Classes.String, values: "any of Ag$lshzxeKEtmdn",
}

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
