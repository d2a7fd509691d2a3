package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// volatile are the parts of replies that differ from run to run: the id of the connection in HELLO.
var volatile = regexp.MustCompile(`(\r\n\$2\r\nid\r\n:)\d+`)

// modules is the list of modules in the reply of HELLO: ours has ReJSON, whose commands are built in.
var modules = regexp.MustCompile(`(\r\n\$7\r\nmodules\r\n)\*1\r\n[*%]\d\r\n\$4\r\nname\r\n\$6\r\nReJSON\r\n(?:.*\r\n)+?\*0\b`)

// withoutReJSON returns replies of mayfly with the modules of Redis in HELLO: none.
func withoutReJSON(replies []byte) []byte { return modules.ReplaceAll(replies, []byte("${1}*0")) }

// unordered are the commands that list in any order. SCAN does too, but may also end sooner or later.
var unordered = []string{"CONFIG", "KEYS", "SCAN", "PUBSUB", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}

// sameAnswers compares what two servers have answered to a pipeline, with allowance for the time between
// and for what comes in any order.
func sameAnswers(pipeline [][]string, ours, theirs []byte) bool {
	a := bytes.Split(volatile.ReplaceAll(withoutReJSON(ours), []byte("${1}0")), []byte("\r\n"))
	b := bytes.Split(volatile.ReplaceAll(theirs, []byte("${1}0")), []byte("\r\n"))
	if slices.ContainsFunc(pipeline, func(args []string) bool { return slices.Contains(unordered, strings.ToUpper(args[0])) }) {
		slices.SortFunc(a, byMoment)
		slices.SortFunc(b, byMoment)
	}
	return slices.EqualFunc(a, b, sameLine)
}

// sameLine compares lines of replies; moments and times to live may differ a little.
func sameLine(ours, theirs []byte) bool {
	const slack = 5000 // ms, or as many seconds: ends are much farther apart
	if bytes.Equal(ours, theirs) {
		return true
	}
	n, ok1 := moment(ours)
	m, ok2 := moment(theirs)
	return ok1 && ok2 && max(n-m, m-n) <= slack
}

// moment reads a line that may be a moment or a time to live.
func moment(line []byte) (n int64, ok bool) {
	if len(line) < 5 || line[0] != ':' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	return n, err == nil
}

// byMoment orders lines so that those that may differ a little stand at the same place in both answers.
func byMoment(a, b []byte) int {
	n, ok1 := moment(a)
	m, ok2 := moment(b)
	switch {
	case ok1 && ok2:
		return cmp.Compare(n, m)
	case ok1:
		return 1
	case ok2:
		return -1
	}
	return bytes.Compare(a, b)
}

// differing shows the lines at which answers differ.
func differing(ours, theirs []byte) string {
	a, b := bytes.Split(ours, []byte("\r\n")), bytes.Split(theirs, []byte("\r\n"))
	first := 0
	for first < min(len(a), len(b)) && sameLine(a[first], b[first]) {
		first++
	}
	return fmt.Sprintf("from line %d on\nmayfly:\t%.800q\nRedis:\t%.800q\n", first, a[first:], b[first:])
}
