package waste

import (
	"encoding/json"
	"fmt"

	"mayfly/keyspace/record"
)

// Moments are the moments (ms) at which the oldest waste of each store became known, by the name of the store's file. A
// store without waste is not among them.
type Moments map[string]int64

// Append appends the record of the moments, whose key is [record.WasteKey]. now is the time in ms.
func (m Moments) Append(dst []byte, now int64) []byte {
	body, err := json.Marshal(m) // in ascending order of the names
	if err != nil {
		panic(err) // names and numbers: cannot fail
	}
	return record.Append(dst, record.WasteKey, record.Item{Kind: record.WasteKind, TS: now, Body: string(body)})
}

// Read decodes the body of the record.
func Read(body string) (m Moments, err error) {
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return nil, fmt.Errorf("record %q: %w", record.WasteKey, err)
	}
	return m, nil
}
