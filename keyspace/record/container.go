package record

import (
	"encoding/json"
	"fmt"
	"strconv"

	"mayfly/expiry"
)

// Container describes a container without its items.
type Container struct {
	Number  uint32 // prefix of its keys; a flushed container gets a new one
	Name    string
	DB      uint32 // number for SELECT; 0 for any but database 0: it has none yet
	LastDB  uint32 // of database 0: the number that a container was given last
	Created int64  // ms; the time of its creation
	Policy  expiry.Policy
	Etag    uint64                // of the settings: changes with them and is never used twice; 0 in older records
	History []expiry.HistoryEntry // the newest changes, oldest first; of what is read at least one
	Indexes [][]string            // of each the paths, with "geo" at the end of one over points
	Aside   *Aside                // nil: the container is in use
	Log     *Log                  // of the deaths in the container; nil: none is kept
	Hidden  *Hidden               // nil: the container has a name
	text    string                // of History: of each entry a comma and the JSON; empty: not known
}

// Aside says why a container is set aside, and until when it can be brought back. Its name may be that of
// another.
type Aside struct {
	What  expiry.Action `json:"what"`  // flushed or dropped
	Until int64         `json:"until"` // ms
	Order uint64        `json:"order"` // ascends with the changes
}

// ValidName reports whether a container may have this name: 1 to 255 of letters, digits, _ . : -
func ValidName(name string) bool {
	if len(name) < 1 || len(name) > 255 {
		return false
	}
	for i := 0; i < len(name); i++ {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case b == '_', b == '.', b == ':', b == '-':
		default:
			return false
		}
	}
	return true
}

// containerBody is the JSON in a container's record. See appendBody, which writes it.
type containerBody struct {
	Name          string `json:"name"`
	TTL           string `json:"ttl"`     // off, -1 or seconds
	Mode          string `json:"ttlmode"` // strict or lenient
	InheritDeadTo int64  `json:"inherit_dead_to"`
	OwnDeadTo     int64  `json:"own_dead_to"`
	Created       int64  `json:"created"`
	DB            uint32 `json:"db,omitempty"`
	LastDB        uint32 `json:"last_db,omitempty"`
	Deadline      string `json:"deadline,omitempty"` // a member of documents
	Hold          string `json:"hold,omitempty"`     // a reason

	Indexes [][]string `json:"indexes,omitempty"`
	Aside   *Aside     `json:"aside,omitempty"`
	logBody
	History []historyBody `json:"history,omitempty"` // see appendHistory
}

// Append appends the container's record, whose key is [ContainerKey] of its number.
func (c Container) Append(dst []byte) []byte {
	start := len(dst)
	dst = AppendHeader(dst, Item{Kind: ContainerKind, TS: c.Created, Version: c.Etag})
	dst = c.appendBody(dst)
	PutSum(ContainerKey(c.Number), dst[start:])
	return dst
}

// appendBody appends the fields of containerBody.
func (c *Container) appendBody(dst []byte) []byte {
	dst = appendText(append(dst, `{"name":`...), c.Name)
	dst = appendTTL(append(dst, `,"ttl":`...), c.Policy.Default)
	dst = appendText(append(dst, `,"ttlmode":`...), c.Policy.Mode.String())
	dst = strconv.AppendInt(append(dst, `,"inherit_dead_to":`...), c.Policy.InheritDeadTo, 10)
	dst = strconv.AppendInt(append(dst, `,"own_dead_to":`...), c.Policy.OwnDeadTo, 10)
	dst = strconv.AppendInt(append(dst, `,"created":`...), c.Created, 10)
	if c.DB != 0 {
		dst = strconv.AppendUint(append(dst, `,"db":`...), uint64(c.DB), 10)
	}
	if c.LastDB != 0 {
		dst = strconv.AppendUint(append(dst, `,"last_db":`...), uint64(c.LastDB), 10)
	}
	if c.Policy.Deadline != "" {
		dst = appendText(append(dst, `,"deadline":`...), c.Policy.Deadline)
	}
	if c.Policy.Hold != "" {
		dst = appendText(append(dst, `,"hold":`...), c.Policy.Hold)
	}
	if len(c.Indexes) > 0 {
		dst = appendValue(append(dst, `,"indexes":`...), c.Indexes)
	}
	if c.Aside != nil {
		dst = appendValue(append(dst, `,"aside":`...), c.Aside)
	}
	dst = c.appendLog(dst)
	if len(c.History) > 0 {
		dst = c.appendHistory(append(dst, `,"history":`...))
	}
	return append(dst, '}')
}

// appendTTL appends a TTL as a JSON string.
func appendTTL(dst []byte, ttl expiry.TTL) []byte {
	if ttl == expiry.Off {
		return append(dst, `"off"`...)
	}
	return append(strconv.AppendInt(append(dst, '"'), int64(ttl), 10), '"')
}

// appendValue appends the JSON of strings and numbers.
func appendValue(dst []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // cannot fail
	}
	return append(dst, text...)
}

// ReadContainer decodes the record under a container's key.
func ReadContainer(key string, it Item) (c Container, err error) {
	if c.Number, err = ContainerNumber(key); err != nil {
		return c, err
	}
	var b containerBody
	if err := json.Unmarshal([]byte(it.Body), &b); err != nil {
		return c, fmt.Errorf("record %q: %w", key, err)
	}
	if c.Policy, err = policyOf(b.TTL, b.Mode, b.InheritDeadTo, b.OwnDeadTo); err != nil {
		return c, fmt.Errorf("record %q: %w", key, err)
	}
	c.Policy.Deadline, c.Policy.Hold = b.Deadline, b.Hold
	c.Name, c.DB, c.LastDB, c.Created, c.Etag, c.Indexes = b.Name, b.DB, b.LastDB, b.Created, it.Version, b.Indexes
	c.Aside = b.Aside
	b.logBody.read(&c)
	if c.History, err = historyOf(b.History); err != nil {
		return c, fmt.Errorf("record %q: %w", key, err)
	}
	if c.History == nil {
		c.History = c.begun()
	}
	return c, nil
}
