package scripts

import (
	"testing"

	"mayfly/test/drill"
)

// echo is a Caller that answers each command with its arguments.
type echo struct{}

func (echo) Call(args []string) (Value, error) {
	v := Value{Kind: Array}
	for _, a := range args {
		v.Elems = append(v.Elems, Value{Kind: Bulk, Str: a})
	}
	return v, nil
}
func (echo) Allowed([]string) (bool, bool) { return true, true }
func (echo) Log(int, string)               {}
func (echo) SetProtocol(int)               {}

func TestRun(t *testing.T) {
	t.Parallel()
	var c Cache
	s, err := c.Load(`local r = redis.call('echo', KEYS[1], ARGV[1]) return r[2] .. r[3]`, false)
	drill.Check(t, err)
	v, err := Run(s, nil, echo{}, []string{"k"}, []string{"v"}, Limits{})
	if err != nil || v.Kind != Bulk || v.Str != "kv" {
		t.Errorf("got %+v, %v", v, err)
	}
}
