package record

import (
	"encoding/json"
	"fmt"

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
	texts   []string              // of History, see there
}

// Aside says why a container is set aside, and until when it can be brought back. Its name may be that of another.
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

// containerBody is the JSON in a container's record.
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

	Indexes [][]string    `json:"indexes,omitempty"`
	Aside   *Aside        `json:"aside,omitempty"`
	History []historyBody `json:"history,omitempty"` // see appendHistory
}

// Append appends the container's record, whose key is [ContainerKey] of its number.
func (c Container) Append(dst []byte) []byte {
	body, err := json.Marshal(containerBody{
		Name: c.Name, TTL: c.Policy.Default.String(), Mode: c.Policy.Mode.String(),
		InheritDeadTo: c.Policy.InheritDeadTo, OwnDeadTo: c.Policy.OwnDeadTo, Created: c.Created, DB: c.DB, LastDB: c.LastDB,
		Deadline: c.Policy.Deadline, Hold: c.Policy.Hold, Indexes: c.Indexes, Aside: c.Aside,
	})
	if err != nil {
		panic(err) // strings and numbers only: cannot fail
	}
	start := len(dst)
	dst = AppendHeader(dst, Item{Kind: ContainerKind, TS: c.Created, Version: c.Etag})
	if len(c.History) == 0 {
		dst = append(dst, body...)
	} else {
		dst = append(append(dst, body[:len(body)-1]...), `,"history":`...)
		dst = append(c.appendHistory(dst), '}')
	}
	PutSum(ContainerKey(c.Number), dst[start:])
	return dst
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
	if c.History, err = historyOf(b.History); err != nil {
		return c, fmt.Errorf("record %q: %w", key, err)
	}
	if c.History == nil {
		c.History = c.begun()
	}
	return c, nil
}
