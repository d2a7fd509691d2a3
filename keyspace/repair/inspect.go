package repair

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"mayfly/keyspace/record"
)

// Inspection is what [Inspect] has found.
type Inspection struct {
	Dir        string       `json:"dir"`
	Partitions int          `json:"partitions"`
	State      FileState    `json:"state"` // the worst of the files'
	Files      []FileReport `json:"files"`
	Notes      []string     `json:"notes,omitempty"` // what is remarkable but does no harm
}

// Inspect reads all files of a data folder and reports what is sound in it and what is not. It writes nothing,
// and refuses a folder that a server uses. It needs memory for one record and one commit at a time. A folder is
// damaged exactly if a server would refuse to start with it.
//
// The error is why the folder could not be examined; damage is not an error.
func Inspect(dir string) (*Inspection, error) {
	s, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	names := newNames()
	v := visitor{
		change:  names.take,
		problem: func(string, Problem) {},
	}
	stores, err := s.eachStore(v)
	if err != nil {
		return nil, err
	}
	journals, err := s.journals(v)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Dir: dir, Partitions: s.partitions, State: Sound}
	in.Files = append(append(append(in.Files, s.format), stores...), journals...)
	in.Notes = notes(dir, names, len(journals))
	for i := range in.Files {
		f := &in.Files[i]
		names.explain(f.Problems)
		if f.State == Damaged || f.State == Torn && in.State == Sound {
			in.State = f.State
		}
	}
	if problem := names.twice(); problem != "" {
		in.State = Damaged
		in.Files[1].State = Damaged
		in.Files[1].Problems = append(in.Files[1].Problems, Problem{Reason: problem})
	}
	return in, nil
}

// notes lists what is remarkable about a folder and does no harm.
func notes(dir string, names *names, journals int) (list []string) {
	kept, err := filepath.Glob(filepath.Join(dir, "*.torn-*"))
	if err == nil && len(kept) > 0 {
		list = append(list, fmt.Sprintf("%d ends of files that earlier starts cut off are kept as *.torn-*", len(kept)))
	}
	if journals == 0 {
		list = append(list, "there is no journal")
	}
	if orphans := names.orphans(); orphans > 0 {
		list = append(list, fmt.Sprintf("%d records are of containers that have been dropped; the next start clears them away", orphans))
	}
	return list
}

// names learns which containers exist from the changes in files. The journals must come after the
// catalogue.
type names struct {
	byNumber map[uint32]*record.Container
	dropped  map[uint32]bool
	items    map[uint32]int // records met, by container
	clock    int64          // ms; the latest moment met
}

func newNames() *names {
	return &names{byNumber: make(map[uint32]*record.Container), dropped: make(map[uint32]bool), items: make(map[uint32]int)}
}

// take learns from a change.
func (n *names) take(c change) error {
	var it record.Item
	if !c.del {
		var err error
		if it, _, err = record.Decode(c.key, c.rec); err != nil {
			return err
		}
		n.clock = max(n.clock, it.TS)
	}
	if number, _, err := record.SplitKey(c.key); err == nil {
		n.items[number]++
		return nil
	}
	number, err := record.ContainerNumber(c.key)
	if err != nil {
		return nil // the clock
	}
	if c.del {
		delete(n.byNumber, number)
		n.dropped[number] = true
		return nil
	}
	container, err := record.ReadContainer(c.key, it.Body)
	if err != nil {
		return err
	}
	n.byNumber[number] = &container
	n.clock = max(n.clock, container.Policy.InheritDeadTo, container.Policy.OwnDeadTo)
	delete(n.dropped, number)
	return nil
}

// explain fills in which container and id the keys of problems name.
func (n *names) explain(problems []Problem) {
	for i := range problems {
		p := &problems[i]
		number, id, err := record.SplitKey(p.Key)
		if err != nil {
			continue
		}
		p.Container, p.ID = fmt.Sprintf("number %d", number), id
		if c := n.byNumber[number]; c != nil {
			p.Container = c.Name
		}
	}
}

// orphans counts the records of containers that are not known.
func (n *names) orphans() (count int) {
	for number, items := range n.items {
		if n.byNumber[number] == nil {
			count += items
		}
	}
	return count
}

// twice returns which name two containers share; empty if none.
func (n *names) twice() string {
	first := make(map[string]uint32)
	for _, number := range slices.Sorted(maps.Keys(n.byNumber)) {
		name := n.byNumber[number].Name
		if other, taken := first[name]; taken {
			return fmt.Sprintf("containers %d and %d are both named %q", other, number, name)
		}
		first[name] = number
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
