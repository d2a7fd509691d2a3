package jsonedit

import (
	"cmp"
	"slices"

	"mayfly/json/jsonpath"
	"mayfly/longtext"
)

// Transform returns the document with the value at each span replaced by what f returns for it; i is the
// index of the span. A span within another comes first, and the outer one gets the text with the inner
// change. Of two spans side by side the later one comes first. An error of f ends the transformation and is
// returned.
func Transform(doc string, spans []jsonpath.Span, f func(i int, value string) (string, error)) (string, error) {
	if len(spans) == 1 {
		s := spans[0]
		value, err := f(0, doc[s.From:s.To])
		return longtext.Join(doc[:s.From], value, doc[s.To:]), err
	}
	t := transformer{doc: doc, spans: spans, order: inOrder(spans), f: f}
	return t.text(0, len(doc), 0, len(spans))
}

// inOrder returns the indices of spans in the order of the text, outer spans before inner ones.
func inOrder(spans []jsonpath.Span) []int {
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].From, spans[b].From), cmp.Compare(spans[b].To, spans[a].To))
	})
	return order
}

type transformer struct {
	doc   string
	spans []jsonpath.Span
	order []int
	f     func(i int, value string) (string, error)
}

// text returns the text from from to to with the changes of order[first:last], which lie in it. The last come
// first.
func (t *transformer) text(from, to, first, last int) (string, error) {
	if first == last {
		return t.doc[from:to], nil
	}
	var outer []int // the indices in order of the spans that are in no other
	for k := first; k < last; {
		outer = append(outer, k)
		end := t.spans[t.order[k]].To
		for k++; k < last && t.spans[t.order[k]].From < end; k++ {
		}
	}
	parts := make([]string, 0, 2*len(outer)+1) // of the text, from the end
	for _, k := range slices.Backward(outer) {
		s := t.spans[t.order[k]]
		inner, err := t.text(s.From, s.To, k+1, last)
		if err != nil {
			return "", err
		}
		value, err := t.f(t.order[k], inner)
		if err != nil {
			return "", err
		}
		parts = append(parts, t.doc[s.To:to], value)
		to, last = s.From, k
	}
	parts = append(parts, t.doc[from:to])
	slices.Reverse(parts)
	return longtext.Join(parts...), nil
}
