package aof

import (
	"bytes"

	"mayfly/keyspace/record"
)

// item returns the command that sets a plain item.
func item(key, body string) []byte {
	return AppendSet(nil, key, string(record.Append(nil, key, record.Item{Kind: record.Plain, Body: body})))
}

// journalFile returns the content of a journal's file with one commit for each text, and where the head and
// the commits end. onDisk returns how much a commit says was on disk, given where those before it end.
func journalFile(onDisk func(ends []int64) int64, commits ...[]byte) (content []byte, ends []int64) {
	content = FirstSeal(7).Append(nil)
	ends = []int64{SealSize}
	for n, commands := range commits {
		from := int64(len(content))
		content = append(content, commands...)
		content = Seal{
			Mark: 7, From: from, At: int64(len(content)), Sum: record.Sum(0, string(commands)), LSN: uint64(n + 1), OnDisk: onDisk(ends),
		}.Append(content)
		ends = append(ends, int64(len(content)))
	}
	return content, ends
}

func nothing([]int64) int64         { return 0 }
func all(ends []int64) int64        { return ends[len(ends)-1] }
func butTheLast(ends []int64) int64 { return ends[max(len(ends)-2, 0)] }
func scanJournal(content []byte) (end int64, err error) {
	_, end, err = Scan(bytes.NewReader(content), "journal", int64(len(content)), Journal, nil)
	return end, err
}
