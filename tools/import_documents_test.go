package tools

import (
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
)

func TestReadDocument(t *testing.T) {
	t.Parallel()
	const now = epoch
	cosmos := func(rest string) string {
		return `{"id":"SO05","customerId":"CO1",` + rest + `"_rid":"x==","_self":"dbs/x/","_etag":"\"0\"","_attachments":"attachments/","_ts":1699999990}`
	}
	for _, test := range []struct {
		in, id, body string
		ts           int64
		ttl          expiry.TTL
	}{
		{cosmos(""), "SO05", `{"id":"SO05","customerId":"CO1"}`, now - 10_000, expiry.Absent},
		{cosmos(`"ttl":30, `), "SO05", `{"id":"SO05","customerId":"CO1","ttl":30}`, now - 10_000, 30},
		{cosmos(`"ttl":-1,"_id":5,"o":{"_rid":1},`), "SO05", `{"id":"SO05","customerId":"CO1","ttl":-1,"_id":5,"o":{"_rid":1}}`, now - 10_000, expiry.Forever},
		// Without Cosmos' members an item is as any document, but for _ts and _etag.
		{`{"id":"a","_self":1,"_ts":1699999990,"_etag":"x"}`, "a", `{"id":"a","_self":1}`, now, expiry.Absent},
		{`{"id":"a","_rid":"x","_ts":"y"}`, "a", `{"id":"a","_rid":"x"}`, now, expiry.Absent},
		{` { "id" : 17 , "v" : 1.50 } `, "17", `{ "id" : 17 , "v" : 1.50 }`, now, expiry.Absent},
		{`{"id":"\u00fc \"","v":1}`, `ü "`, `{"id":"\u00fc \"","v":1}`, now, expiry.Absent},
		{`{"id":1,"_id":"b","ttl":20}`, "b", `{"id":1,"_id":"b","ttl":20}`, now, 20},
		// MongoDB's extended JSON, canonical and relaxed.
		{`{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"n":{"$numberInt":"5"},"l":[{"$numberLong":"9007199254740993"}]}`,
			"5d505646cf6d4fe581014ab2", `{"_id":"5d505646cf6d4fe581014ab2","n":5,"l":[9007199254740993]}`, now, expiry.Absent},
		{`{"_id":{"$numberInt":"7"},"ttl":{"$numberDouble":"20.0"},"at":{"$date":{"$numberLong":"1565546054692"}},"was":{"$date":"2019-08-11T17:54:14.692Z"}}`,
			"7", `{"_id":7,"ttl":20.0,"at":"2019-08-11T17:54:14.692Z","was":"2019-08-11T17:54:14.692Z"}`, now, 20},
		{`{"_id":"x","d":{"$numberDecimal":"1.50"},"n":{"$numberDouble":"NaN"},"b":{"$binary":{"base64":"AAE=","subType":"00"}},"u":{"$undefined":true},"s":"a <b> $5"}`,
			"x", `{"_id":"x","d":1.50,"n":"NaN","b":"AAE=","u":null,"s":"a <b> $5"}`, now, expiry.Absent},
		// What JSON cannot say stays, and so do names that only look like it.
		{`{"_id":"x","t":{"$timestamp":{"t":1,"i":2}},"k":{"$minKey":1},"two":{"$oid":"a","x":1},"bad":{"$numberInt":"5x"},"zero":{"$numberInt":"05"},"$":{}}`,
			"x", `{"_id":"x","t":{"$timestamp":{"t":1,"i":2}},"k":{"$minKey":1},"two":{"$oid":"a","x":1},"bad":{"$numberInt":"5x"},"zero":{"$numberInt":"05"},"$":{}}`, now, expiry.Absent},
	} {
		e, err := readDocument([]byte(test.in), now, false)
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if body := strings.TrimSpace(e.item.Body); e.id != test.id || body != test.body || e.item.TS != test.ts || e.item.ExpireAt != expiry.ExpireAt(test.ts, test.ttl) {
			t.Errorf("%s: read as %s of %q, ts %d, end %d", test.in, body, e.id, e.item.TS, e.item.ExpireAt)
		}
		if e.fresh != (test.ts == now) || e.keepsLeft == e.fresh {
			t.Errorf("%s: fresh %t, keeps what is left %t", test.in, e.fresh, e.keepsLeft)
		}
	}
	for in, want := range map[string]int64{`{"id":"a","_ts":1699999990,"v":1}`: 1_699_999_990_000, `{"_id":"a","_ts":"y"}`: now} {
		if e, err := readDocument([]byte(in), now, true); err != nil || e.id != "a" || e.item.TS != want || e.fresh != (want == now) {
			t.Errorf("%s, timed: %q of %d, fresh %t, %v", in, e.id, e.item.TS, e.fresh, err)
		}
	}
	for in, want := range map[string]string{
		`{}`: "there is no id", `{"id":""}`: "the id is empty", `{"id":null}`: "invalid id null", `{"_id":{"a":1}}`: `invalid id {"a":1}`, `{"id":1,"id":2}`: "there is no id",
		`[]`: "legal are JSON objects", `{"id":1`: "invalid JSON", `{"id":1} {"id":2}`: "invalid JSON", `{"id":{"$oid":"x"}} {}`: "more than one", `{"id":{"$oid":"x"}`: "invalid JSON",
		`{"id":"` + strings.Repeat("x", 65537) + `"}`: "65537 bytes", `{"$a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "nested deeper",
	} {
		if _, err := readDocument([]byte(in), now, false); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: %v, want %q", in, err, want)
		}
	}
}

func TestImportDocuments(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	lines := `{"id":"a","ttl":30,"_rid":"r","_self":"s","_etag":"e","_attachments":"t","_ts":1699999980}

{"id":"gone","ttl":10,"_rid":"r","_ts":1699999980}
{"_id":{"$oid":"b"},"n":{"$numberLong":"5"}}
nonsense
`
	_, report := h.run(exitIncomplete, lines, "import", h.path("lines"), "--container", "orders", "--ttl", "-1")
	for _, text := range []string{"line 5: ", "imported 1 containers and 2 items; 1 are dead", "1 lines are bad"} {
		if !strings.Contains(report, text) {
			t.Errorf("%q is missing in %s", text, report)
		}
	}
	check := func(name string) {
		t.Helper()
		c := h.content(name)
		a, b := c.Items[[2]string{"orders", "a"}], c.Items[[2]string{"orders", "b"}]
		if a.Body != `{"id":"a","ttl":30}` || a.TS != epoch-20_000 || a.ExpireAt != epoch+10_000 || b.Body != `{"_id":"b","n":5}` || b.TS != epoch || len(c.Items) != 2 {
			t.Errorf("%+v", c)
		}
		if o := c.Containers["orders"]; o.Policy.Default != expiry.Forever || o.Created == 0 {
			t.Errorf("container %+v", o)
		}
	}
	check("lines")
	array := "\xef\xbb\xbf \n[" + strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(lines, "\n\n", "\n"), "\nnonsense\n"), "\n", ",\n") + ", 5]\n"
	_, report = h.run(exitIncomplete, array, "import", h.path("array"), "--container", "orders", "--ttl", "-1")
	if !strings.Contains(report, "item 4: ") || !strings.Contains(report, "1 items are bad") {
		t.Error(report)
	}
	check("array")
	for _, input := range []string{"", " \n", "[]", "[ ]\n"} {
		h.run(exitOK, input, "import", h.path("array"), "--container", "orders")
	}
	check("array")
	h.refused(lines, []string{"line 1", "no container carts", "--ttl"}, "import", h.path("array"), "--container", "carts")
	h.refused(`[{"id":"a"}`, []string{"the array does not end"}, "import", h.path("array"), "--container", "orders")
	h.refused(`[{"id":"a"},{`, []string{"item 2"}, "import", h.path("array"), "--container", "orders")
	h.refused(lines, []string{"invalid container name"}, "import", h.path("array"), "--container", "or ders")
	for _, ttl := range []string{"0", "1h"} {
		text := "mayfly import: invalid default TTL " + ttl
		if _, report := h.run(exitFailed, lines, "import", h.path("none")+"/", "--container", "orders", "--ttl", ttl); !strings.HasPrefix(report, text) || exists(h.path("none")) {
			t.Error(report)
		}
	}
	full := []string{"import", h.path("array"), "--max-containers", "1", "--ttl", "5", "--container", "carts"}
	if _, report := h.run(exitFailed, lines, full...); !strings.HasPrefix(report, `mayfly import: cannot create container "carts"`) {
		t.Error(report)
	}
	h.refused(lines, []string{"--container names"}, "import", h.path("array"), "--ttl", "5")
	h.refused(lines, []string{"buntdb"}, "import", h.path("array"), "--container", "orders", "--format", "buntdb")
	_, report = h.run(exitIncomplete, `{"id":"a"}`, "import", h.path("array"))
	if !strings.Contains(report, "--container") {
		t.Error(report)
	}
}

// FuzzReadDocument: what is read is a document that would be stored as it is, with an id.
func FuzzReadDocument(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","ttl":30,"_rid":"r","_ts":1699999980}`, `{"_id":{"$oid":"b"},"n":{"$numberLong":"5"},"d":{"$date":{"$numberLong":"-1"}}}`,
		`{"id":1,"b":{"$binary":{"base64":"","subType":""}},"x":{"$numberDouble":"-Infinity"}}`, `{"id":"x","$a":[{"$undefined":[]}]}`, `[]`, `{"id":"$"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := readDocument([]byte(text), epoch, false)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%q: not one line: %q", text, err)
			}
			return
		}
		doc, err := jsondoc.Parse(e.item.Body, jsondoc.MaxSize)
		if err != nil || doc.JSON != e.item.Body || e.id == "" || e.item.ExpireAt != expiry.ExpireAt(e.item.TS, doc.TTL) || e.item.Kind != keyspace.Document {
			t.Fatalf("%q was read as %+v: %v", text, e, err)
		}
	})
}
