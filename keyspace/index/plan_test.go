package index

import (
	"fmt"
	"slices"
	"testing"

	"mayfly/query"
	"mayfly/test/drill"
)

// TestPlansOfSpecialQueries: plans that random queries meet too seldom select what a scan selects.
func TestPlansOfSpecialQueries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pointers []string
		geo      bool
		query    string
		used     bool
	}{
		{[]string{"/a"}, false, `c = 1 AND (a = 1 AND a = 2)`, true},
		{[]string{"/a"}, false, `(c = 1 AND a > 0) AND (a < 3 AND (a = 1 OR a = 2))`, true},
		{[]string{"/a"}, false, `a = 1 OR (a = 2 AND a = 3)`, false},
		{[]string{"/a"}, false, `(c = 1 OR a = 1) OR a = 2`, false},
		{[]string{"/a"}, false, `(a = 3 OR a = 1) OR a = 2`, true},
		{[]string{"/a"}, false, `NOT (a = 3 AND (a = 1 AND a = 2))`, false},
		{[]string{"/t/[]"}, false, `true ORDER BY t`, false},
		{[]string{"/t/[]"}, false, `true ORDER BY t DESC`, false},
		{[]string{"/t/[]"}, false, `ARRAY_CONTAINS(t, 1) ORDER BY t DESC`, true},
		{[]string{"/p"}, true, `ST_WITHIN(p, ST_BOX(170, -10, 180, 10))`, true},
		{[]string{"/p"}, true, `ST_WITHIN(p, ST_BOX(-180, -10, -170, 10))`, true},
		{[]string{"/p"}, true, `ST_WITHIN(p, ST_BOX(170, -10, -170, 10))`, true},
		{[]string{"/p"}, true, `ST_WITHIN(p, ST_BOX(-180, -10, 180, 10))`, true},
	} {
		d, err := Define(tt.pointers, tt.geo)
		drill.Check(t, err)
		c := newCollection([]Definition{d})
		for i, lon := range []int{-180, -175, 0, 175, 180} {
			for a := range 4 {
				c.put(fmt.Sprint(i, a), fmt.Sprintf(`{"a":%d,"c":1,"t":[%d,1,[2]],"p":{"type":"Point","coordinates":[%d,%d]}}`, a, a, lon, a))
			}
		}
		q, err := query.Parse("SELECT VALUE _id WHERE "+tt.query, nil)
		drill.Check(t, err)
		p, ok := Choose([]Definition{d}, func(int) bool { return true }, q)
		if ok != tt.used {
			t.Errorf("%s by %s: used %t", tt.query, d.String(), ok)
		}
		if !ok {
			continue
		}
		got, want := c.read(t, &p, q), c.scan(t, q)
		if !p.Ordered {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s by %s:\ngot  %v\nwant %v", tt.query, d.String(), got, want)
		}
	}
}

// TestOnlyOrderedPlansDescend: the spans of other plans are read from low to high, slice after slice.
func TestOnlyOrderedPlansDescend(t *testing.T) {
	t.Parallel()
	d, err := Define([]string{"/a", "/b"}, false)
	drill.Check(t, err)
	q, err := query.Parse("WHERE a IN (1, 2) ORDER BY a DESC", nil)
	drill.Check(t, err)
	if p, ok := Choose([]Definition{d}, func(int) bool { return true }, q); !ok || p.Ordered || p.Desc || len(p.Spans) != 2 {
		t.Errorf("%t, %+v", ok, p)
	}
}
