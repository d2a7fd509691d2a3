package undo

import (
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// Layer is a container in the stack of its name. Methods of [Stack] replace its history and its aside, which
// are immutable.
type Layer[C any] struct {
	Container C
	History   []expiry.HistoryEntry // of one set aside the last entry says why
	Aside     *record.Aside         // nil: the listed container, which is the last layer
	Changed   bool                  // the history or the aside is another
	Ended     bool                  // set aside, and cannot be brought back any more
}

// Stack has the containers of a name: those set aside, oldest first, and the listed one, if there is one.
type Stack[C any] []*Layer[C]

// Window is a change that can be taken back.
type Window[C any] struct {
	*Layer[C]
	expiry.Window
	Rule bool // else the container was flushed or dropped
}

// Change returns the entry of the history.
func (w *Window[C]) Change() expiry.HistoryEntry { return w.History[w.Entry] }

// Windows returns the windows that are open at a moment in ms, oldest first.
func (s Stack[C]) Windows(now int64) (list []Window[C]) {
	for _, l := range s {
		rules := l.History
		if l.Aside != nil {
			if l.Ended || l.Aside.Until <= now {
				list = nil
				continue
			}
			rules = rules[:len(rules)-1]
		}
		for _, w := range expiry.Windows(rules, now) {
			list = append(list, Window[C]{l, w, true})
		}
		if l.Aside != nil {
			list = append(list, Window[C]{l, expiry.Window{Entry: len(rules), Until: l.Aside.Until}, false})
		}
	}
	return list
}

// Nothing returns why no window is open.
func (s Stack[C]) Nothing() *NothingError {
	if len(s) == 0 {
		return &NothingError{Unknown: true}
	}
	return &NothingError{Change: expiry.NewestChange(s[len(s)-1].History)}
}

// Open makes room for a change that follows at a moment in ms and can be taken back until another; 0: it
// cannot.
func (s Stack[C]) Open(now, until int64) {
	s.Limit(until)
	if list := s.Windows(now); len(list) >= expiry.MostWindows {
		for _, w := range list[:len(list)-expiry.MostWindows+1] {
			s.close(w)
		}
	}
}

// Limit ends all windows no later than a moment in ms; 0: now.
func (s Stack[C]) Limit(until int64) {
	for _, l := range s {
		switch {
		case l.Aside != nil && until == 0:
			l.Ended = true
		case l.Aside != nil && l.Aside.Until > until:
			l.Aside = &record.Aside{What: l.Aside.What, Until: until, Order: l.Aside.Order}
			l.Changed = true
			l.limit(until)
		case l.Aside == nil:
			l.limit(until)
		}
	}
}

// limit is [Stack.Limit] for the rules of a layer.
func (l *Layer[C]) limit(until int64) {
	if limited := expiry.LimitWindows(l.History, until); len(limited) > 0 && &limited[0] != &l.History[0] {
		l.History, l.Changed = limited, true
	}
}

// close ends the oldest window.
func (s Stack[C]) close(w Window[C]) {
	listed := s.listed()
	if !w.Rule {
		w.Ended = true
		if listed != nil {
			listed.closeFirst(w.isFlush)
		}
		return
	}
	etag := w.Change().Etag
	w.closeEntry(w.Entry)
	if w.Aside != nil && listed != nil { // its history counts once it has the items again
		listed.closeFirst(func(e expiry.HistoryEntry) bool { return e.What == expiry.Set && e.Etag == etag })
	}
}

// listed returns the layer of the listed container, nil if there is none.
func (s Stack[C]) listed() *Layer[C] {
	if len(s) == 0 || s[len(s)-1].Aside != nil {
		return nil
	}
	return s[len(s)-1]
}

func (l *Layer[C]) closeFirst(is func(e expiry.HistoryEntry) bool) {
	if at := slices.IndexFunc(l.History, is); at >= 0 {
		l.closeEntry(at)
	}
}

func (l *Layer[C]) closeEntry(at int) {
	l.History, l.Changed = expiry.CloseWindow(l.History, at), true
}

// isFlush reports whether an entry in the history of the listed container is the flush that has set the layer
// aside. Several flushes may be of one ms; the windows of those that went to other names are closed.
func (l *Layer[C]) isFlush(e expiry.HistoryEntry) bool {
	why := l.History[len(l.History)-1]
	return e.What == expiry.Flushed && why.What == expiry.Flushed && e.At == why.At && e.Undo > expiry.EndedEarly && !e.Undone
}

// FlushIn returns the position, in the history of the listed container, of the newest flush that has set the
// layer aside; -1 if it is not there any more.
func (l *Layer[C]) FlushIn(history []expiry.HistoryEntry) int {
	for i, e := range slices.Backward(history) {
		if l.isFlush(e) {
			return i
		}
	}
	return -1
}
