package keys

import (
	"math"
	"math/big"
	"strconv"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

const (
	errIncrExENX      = engine.Error("ERR ENX flag requires an expiration")
	errIncrExBounds   = engine.Error("ERR LBOUND can't be greater than UBOUND")
	errIncrExInfinite = engine.Error("ERR BYFLOAT increment cannot be Infinity")
	errIncrExValue    = engine.Error("ERR value cannot be Infinity")
	errIncrExOverflow = engine.Error("ERR applied increment would overflow")
	errIncrExApplied  = engine.Error("ERR applied increment would be Infinity")

	errIncrExInt   = "ERR %s is not an integer or out of range"
	errIncrExFloat = "ERR %s is not a valid float"
)

// incrExOptions are the options of INCREX. Numbers are as the client wrote them; nil: not given.
type incrExOptions struct {
	byInt, byFloat, lower, upper *string
	saturate, ifNone             bool // SATURATE, ENX
	expire                       items.ExpireOption
}

// parse reads the arguments after the key. Unlike those of SET, no option may be repeated.
func (o *incrExOptions) parse(args []string) error {
	values := []struct {
		word string
		text **string
	}{{"BYINT", &o.byInt}, {"BYFLOAT", &o.byFloat}, {"LBOUND", &o.lower}, {"UBOUND", &o.upper}}
	for len(args) > 0 {
		used := 0
		switch {
		case redisfmt.EqualFold(args[0], "SATURATE") && !o.saturate:
			o.saturate, used = true, 1
		case redisfmt.EqualFold(args[0], "ENX") && !o.ifNone:
			o.ifNone, used = true, 1
		case o.expire.Unset():
			used = o.expire.ParseGetex(args)
		}
		for _, v := range values {
			if redisfmt.EqualFold(args[0], v.word) && *v.text == nil && len(args) > 1 {
				*v.text, used = &args[1], 2
			}
		}
		if used == 0 {
			return engine.ErrSyntax
		}
		args = args[used:]
	}
	switch {
	case o.byInt != nil && o.byFloat != nil, o.expire.Persist && o.ifNone:
		return engine.ErrSyntax
	case o.ifNone && o.expire.Unset():
		return errIncrExENX
	}
	return nil
}

// counted is what INCREX makes of a value.
type counted struct {
	text           string // the new value, to be stored
	value, applied engine.Reply
	refused        bool // it would be out of bounds
}

// counter returns what INCREX makes of the text of a value.
type counter func(x *engine.Context, text string) (counted, error)

// parseIncrEx parses INCREX. It counts in integers of 64 bits, as INCR, or in long doubles of C, as
// INCRBYFLOAT.
func parseIncrEx(in *engine.Input) (engine.Run, error) {
	var o incrExOptions
	if err := o.parse(in.Args[2:]); err != nil {
		return nil, err
	}
	parse := o.ints
	if o.byFloat != nil {
		parse = o.floats
	}
	count, err := parse()
	if err != nil {
		return nil, err
	}
	var m items.ExpireTime
	if o.expire.Unit != 0 {
		if m, err = o.expire.Time("increx"); err != nil {
			return nil, err
		}
	}
	key := in.Args[1]
	return func(x *engine.Context) engine.Reply {
		end, ok := m.Deadline(x.Now())
		if !ok {
			return engine.Fail(engine.Errorf(engine.ErrInvalidExpire, "increx"))
		}
		c, it, found, err := getPlain(x, key)
		if err != nil {
			return engine.Fail(err)
		}
		text := "0"
		if found {
			text = it.Body
		}
		n, err := count(x, text)
		if err != nil {
			return engine.Fail(err)
		}
		if !n.refused {
			o.store(x, c, key, it, found, n.text, end)
		}
		return engine.Array(n.value, n.applied)
	}, nil
}

// store stores the new value of a key with the end that the options give it (ms). One in the past deletes the
// key.
func (o *incrExOptions) store(x *engine.Context, c *keyspace.Container, key string, it keyspace.Item, found bool, text string, end int64) {
	p, expireAt, event := c.Policy(), it.ExpireAt, events.Kind{}
	if !found {
		it.TS = x.Now()
	}
	_, ends := p.End(it.TS, it.ExpireAt)
	switch {
	case o.expire.Persist && canExpire(p, it):
		expireAt, event = expiry.Never, events.Persist
	case o.expire.Unit != 0 && !(o.ifNone && found && ends):
		if p.Hold != "" {
			end = max(end, x.Now()+1)
		}
		if end <= x.Now() {
			x.Remove(c, key)
			return
		}
		expireAt, event = end, events.Expire
	}
	if o.byFloat == nil {
		x.Put(c, key, keyspace.Plain, text, expireAt, events.IncrBy)
	} else {
		x.Put(c, key, keyspace.Plain, text, expireAt, events.IncrByFloat)
		x.Tx.SetEncoding(c, key, keyspace.Text)
	}
	if event != (events.Kind{}) {
		x.Notify(event, c, key)
	}
}

// ints reads the increment and the bounds of a counter of integers.
func (o *incrExOptions) ints() (counter, error) {
	by, low, high := int64(1), int64(math.MinInt64), int64(math.MaxInt64)
	for _, a := range []struct {
		text *string
		name string
		n    *int64
	}{{o.byInt, "Increment", &by}, {o.lower, "LBOUND", &low}, {o.upper, "UBOUND", &high}} {
		if a.text == nil {
			continue
		}
		var ok bool
		if *a.n, ok = redisfmt.ParseInt(*a.text); !ok {
			return nil, engine.Errorf(errIncrExInt, a.name)
		}
	}
	if low > high {
		return nil, errIncrExBounds
	}
	return func(_ *engine.Context, text string) (counted, error) {
		n, ok := redisfmt.ParseInt(text)
		if !ok {
			return counted{}, engine.ErrNotInteger
		}
		sum, fits := redisfmt.AddInt(n, by)
		switch {
		case fits && low <= sum && sum <= high:
		case !o.saturate:
			return counted{value: engine.Integer(n), applied: engine.Integer(0), refused: true}, nil
		case !fits && by > 0:
			sum = high
		case !fits:
			sum = low
		default:
			sum = min(max(sum, low), high)
		}
		applied, ok := redisfmt.SubInt(sum, n)
		if !ok {
			return counted{}, errIncrExOverflow
		}
		return counted{text: strconv.FormatInt(sum, 10), value: engine.Integer(sum), applied: engine.Integer(applied)}, nil
	}, nil
}

// floats reads the increment and the bounds of a counter of long doubles. Only bounds may be infinite.
func (o *incrExOptions) floats() (counter, error) {
	by, low, high := new(big.Float), redisfmt.LargestFloat(true), redisfmt.LargestFloat(false)
	for _, a := range []struct {
		text *string
		name string
		f    **big.Float
	}{{o.byFloat, "Increment", &by}, {o.lower, "LBOUND", &low}, {o.upper, "UBOUND", &high}} {
		if a.text == nil {
			continue
		}
		var ok bool
		if *a.f, ok = redisfmt.ParseFloat(*a.text); !ok {
			return nil, engine.Errorf(errIncrExFloat, a.name)
		}
	}
	switch {
	case by.IsInf():
		return nil, errIncrExInfinite
	case low.Cmp(high) > 0:
		return nil, errIncrExBounds
	}
	return func(x *engine.Context, text string) (counted, error) {
		f, ok := redisfmt.ParseFloat(text)
		switch {
		case !ok:
			return counted{}, engine.ErrNotFloat
		case f.IsInf():
			return counted{}, errIncrExValue
		}
		sum, fits := redisfmt.AddFloat(f, by)
		if !fits {
			sum = redisfmt.LargestFloat(sum.Signbit())
		}
		if outside := sum.Cmp(low) < 0 || sum.Cmp(high) > 0; outside || !fits {
			switch {
			case !o.saturate:
				return counted{value: floatReply(x, f), applied: floatReply(x, new(big.Float)), refused: true}, nil
			case sum.Cmp(low) < 0:
				sum = low
			case sum.Cmp(high) > 0:
				sum = high
			}
		}
		applied, ok := redisfmt.AddFloat(sum, new(big.Float).Neg(f))
		if !ok {
			return counted{}, errIncrExApplied
		}
		return counted{text: redisfmt.FormatFloat(sum), value: floatReply(x, sum), applied: floatReply(x, applied)}, nil
	}, nil
}

// floatReply is a double for RESP3, and its text for RESP2.
func floatReply(x *engine.Context, f *big.Float) engine.Reply {
	if x.Proto() >= 3 {
		d, _ := f.Float64()
		return engine.Double(d)
	}
	return engine.Bulk(redisfmt.FormatFloat(f))
}
