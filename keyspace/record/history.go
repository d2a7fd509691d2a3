package record

import (
	"fmt"
	"strconv"

	"mayfly/expiry"
)

// historyBody is the JSON of an entry of a container's history. Each CONTAINER.SET writes all entries, so
// they are short.
type historyBody struct {
	At       int64    `json:"at"`
	What     string   `json:"what"`
	TTL      string   `json:"ttl"`
	Mode     string   `json:"ttlmode"` // absent: strict
	DeadTo   [2]int64 `json:"dead_to"` // the marks: inherit_dead_to and own_dead_to; absent: 0
	Deadline string   `json:"deadline"`
	Hold     string   `json:"hold"`
	Etag     string   `json:"etag"` // hexadecimal, as the version in a record's header
	By       string   `json:"by"`
	Kills    *int64   `json:"kills"`
	Reason   string   `json:"reason"`
	Undo     int64    `json:"undo"`
	Undone   bool     `json:"undone"`
}

// appendHistory appends the history, which must not be empty, as a JSON array.
func (c *Container) appendHistory(dst []byte) []byte {
	start := len(dst)
	if dst = append(dst, c.text...); c.text == "" {
		for i := range c.History {
			dst = appendEntry(append(dst, ','), &c.History[i])
		}
	}
	dst[start] = '[' // instead of a comma
	return append(dst, ']')
}

// appendEntry appends an entry of a history as JSON.
func appendEntry(dst []byte, h *expiry.HistoryEntry) []byte {
	dst = strconv.AppendInt(append(dst, `{"at":`...), h.At, 10)
	dst = appendText(append(dst, `,"what":`...), string(h.What))
	dst = appendTTL(append(dst, `,"ttl":`...), h.Policy.Default)
	if h.Policy.Mode != expiry.Strict {
		dst = appendText(append(dst, `,"ttlmode":`...), h.Policy.Mode.String())
	}
	if h.Policy.InheritDeadTo != 0 || h.Policy.OwnDeadTo != 0 {
		dst = strconv.AppendInt(append(dst, `,"dead_to":[`...), h.Policy.InheritDeadTo, 10)
		dst = append(strconv.AppendInt(append(dst, ','), h.Policy.OwnDeadTo, 10), ']')
	}
	dst = strconv.AppendUint(append(dst, `,"etag":"`...), h.Etag, 16)
	dst = append(dst, '"')
	if h.Policy.Deadline != "" {
		dst = appendText(append(dst, `,"deadline":`...), h.Policy.Deadline)
	}
	if h.Policy.Hold != "" {
		dst = appendText(append(dst, `,"hold":`...), h.Policy.Hold)
	}
	if h.By != "" {
		dst = appendText(append(dst, `,"by":`...), h.By)
	}
	if h.Kills >= 0 {
		dst = strconv.AppendInt(append(dst, `,"kills":`...), h.Kills, 10)
	}
	if h.Reason != "" {
		dst = appendText(append(dst, `,"reason":`...), h.Reason)
	}
	if h.Undo != 0 {
		dst = strconv.AppendInt(append(dst, `,"undo":`...), h.Undo, 10)
	}
	if h.Undone {
		dst = append(dst, `,"undone":true`...)
	}
	return append(dst, '}')
}

// appendText appends a JSON string.
func appendText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendValue(dst, s)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// policyOf reads a policy as a record has it.
func policyOf(ttl, mode string, inheritDeadTo, ownDeadTo int64) (p expiry.Policy, err error) {
	p = expiry.Policy{InheritDeadTo: inheritDeadTo, OwnDeadTo: ownDeadTo}
	p.Default, err = expiry.ParseDefault(ttl)
	if mode == expiry.Lenient.String() {
		p.Mode = expiry.Lenient
	}
	return p, err
}

// historyOf reads the entries of a record.
func historyOf(bodies []historyBody) (history []expiry.HistoryEntry, err error) {
	for _, b := range bodies {
		h := expiry.HistoryEntry{At: b.At, What: expiry.Action(b.What), By: b.By, Kills: -1, Reason: b.Reason, Undo: b.Undo, Undone: b.Undone}
		if h.Policy, err = policyOf(b.TTL, b.Mode, b.DeadTo[0], b.DeadTo[1]); err != nil {
			return nil, err
		}
		h.Policy.Deadline, h.Policy.Hold = b.Deadline, b.Hold
		if h.Etag, err = strconv.ParseUint(b.Etag, 16, 64); err != nil {
			return nil, fmt.Errorf("etag of the history: %w", err)
		}
		if h.What == expiry.Held {
			h.Policy.Hold = b.Reason // nothing but a release follows it
		}
		if b.Kills != nil {
			h.Kills = *b.Kills
		}
		history = append(history, h)
	}
	return history, nil
}

// begun returns the history of a record without one: the rule is at most as old as its marks.
func (c *Container) begun() []expiry.HistoryEntry {
	h := expiry.HistoryEntry{At: c.Created, What: expiry.Created, Policy: c.Policy, Etag: c.Etag, Kills: -1}
	if changed := max(c.Policy.InheritDeadTo, c.Policy.OwnDeadTo); changed > h.At {
		h.At, h.What = changed, expiry.Set
	}
	return []expiry.HistoryEntry{h}
}
