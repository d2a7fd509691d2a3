package record

import (
	"reflect"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestLogsInRecordsOfContainers: what concerns logs comes back as it was, and older versions' records have
// none of it.
func TestLogsInRecordsOfContainers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c    Container
		text string
	}{
		{Container{Name: "orders", Log: &Log{Number: 41, MaxLen: 1000, Bodies: true}}, `,"log":41,"log_max":1000,"log_bodies":true}`},
		{Container{Name: "orders", Log: &Log{Number: 41, MaxLen: 1}}, `,"log":41,"log_max":1,"log_bodies":false}`},
		{Container{Name: "orders", Log: &Log{Number: 41, MaxLen: 1, Deletes: true}}, `,"log":41,"log_max":1,"log_bodies":false,"log_deletes":true}`},
		{Container{Name: "orders"}, `"created":0}`},
		{Container{Hidden: &Hidden{LogOf: 12}}, `,"log_of":12}`},
		{Container{Hidden: &Hidden{LogOf: 0}}, `,"log_of":0}`},
		{Container{Hidden: &Hidden{GroupOf: 41, Group: "mailer"}}, `,"group_of":41,"group":"mailer"}`},
		{Container{Hidden: &Hidden{GroupOf: 41, Group: ""}}, `,"group_of":41,"group":""}`},
		{Container{Hidden: &Hidden{GroupOf: 41, Group: "grüße\n\"x\" �"}}, `,"group_of":41,"group":"grüße\n\"x\" �"}`},
		{Container{Hidden: &Hidden{GroupOf: 41, Group: "a\xff\x00"}}, `,"group_of":41,"group_base64":"Yf8A"}`},
	} {
		tt.c.Number, tt.c.Policy = 7, expiry.Policy{Default: 3600}
		key := ContainerKey(7)
		rec := string(tt.c.Append(nil))
		if !strings.HasSuffix(rec, tt.text) {
			t.Errorf("%q does not end with %q", rec, tt.text)
		}
		it, _, err := Decode(key, rec)
		drill.Check(t, err)
		back, err := ReadContainer(key, it)
		if err != nil || !reflect.DeepEqual(back.Log, tt.c.Log) || !reflect.DeepEqual(back.Hidden, tt.c.Hidden) || back.Name != tt.c.Name {
			t.Errorf("%q is read as %+v, %v", rec, back, err)
		}
		if h := tt.c.Hidden; h != nil && h.IsGroup() != (h.GroupOf == 41) {
			t.Errorf("%+v: IsGroup is %t", h, h.IsGroup())
		}
	}
}
