package selection

import (
	"testing"

	"mayfly/keyspace/index"
	"mayfly/query"
	_ "mayfly/test/drill" // its flags
)

// TestPlaces: a place is the same after it was a text.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, p := range places() {
		if got, ok := ParsePlace(p.Text()); !ok || got != p {
			t.Errorf("%+v is read as %+v; %t", p, got, ok)
		}
	}
	for _, p := range []EndPlace{{End: 1_000, ID: "a", Any: true}, {End: 1 << 50, Any: true}} {
		if got, ok := ParseEndPlace(p.Text()); !ok || got != p {
			t.Errorf("%+v is read as %+v; %t", p, got, ok)
		}
	}
}

func places() (list []Place) {
	d, err := index.Define([]string{"/a", "/b"}, false)
	if err != nil {
		panic(err)
	}
	for _, text := range []string{`{"a":1}`, `{"a":"open","b":-2.5}`, `{"a":"a longer text\u0000","b":null}`} {
		keys := index.NewReader([]index.Definition{d}).Load(text, 0).Keys(0, nil)
		list = append(list, Place{Partition: len(list), Bound: index.Bound{Key: keys[0], ID: "id"}, Any: true})
	}
	tied := list[1]
	tied.Values = string(index.AppendValues(nil, []query.Value{query.StringValue("open"), query.NullValue, {}, query.NumberValue(3)}))
	return append(list, tied, Place{Partition: 255})
}

// FuzzParsePlace: whatever a client sends as a cursor is refused, or is a place of the same text.
func FuzzParsePlace(f *testing.F) {
	for _, p := range places() {
		f.Add(p.Text())
		f.Add(p.Text()[1:])
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := ParsePlace(text)
		if !ok {
			return
		}
		if again, ok := ParsePlace(p.Text()); !ok || again != p {
			t.Errorf("%q is read as %+v and then as %+v", text, p, again)
		}
	})
}
