package index

import (
	"runtime"
	"slices"
	"sync"
)

// Container is a container whose indexes a [Builder] builds. It has the locks.
type Container interface {
	Indexes() []*Index

	// One calls f with a partition locked, All with all of them. They pass the trees of the container there;
	// a partition without items has nil or none.
	One(partition int, f func(t *Table))
	All(f func(list []*Table))
}

// Builder builds the indexes that are not ready. Safe for concurrent use.
type Builder struct {
	partitions int
	containers func() []Container // those that exist now
	wake       chan struct{}
	stop       <-chan struct{}
}

// NewBuilder returns a builder. It stops when stop is closed.
func NewBuilder(partitions int, containers func() []Container, stop <-chan struct{}) *Builder {
	return &Builder{partitions, containers, make(chan struct{}, 1), stop}
}

// Wake makes Run build what is not ready. It may be called under locks.
func (b *Builder) Wake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run builds indexes whenever Wake is called, until it is stopped.
func (b *Builder) Run() {
	for {
		select {
		case <-b.stop:
			return
		case <-b.wake:
			b.Build()
		}
	}
}

// Build builds all indexes that are not ready, and returns when they are or the builder is stopped. A
// partition is locked for 128 items at a time.
func (b *Builder) Build() {
	for b.buildSome() && !b.stopped() {
	}
}

func (b *Builder) stopped() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

// buildSome builds what is not built of the containers that exist now. It reports whether it found something
// to do.
func (b *Builder) buildSome() (more bool) {
	for _, c := range b.containers() {
		for _, x := range c.Indexes() {
			if x.Ready() {
				continue
			}
			more = true
			for number := range b.partitions {
				for built := false; !built; {
					if b.stopped() {
						return true
					}
					c.One(number, func(t *Table) { built = t == nil || t.Build(x) }) // also if x was dropped, or SWAPDB has moved it
				}
			}
			c.All(func(list []*Table) { finish(c, x, list) })
		}
	}
	return more
}

// finish makes an index of a container ready if it is built. It may not be: SWAPDB has moved it, or a
// rollback has brought it back without its trees.
func finish(c Container, x *Index, list []*Table) {
	if slices.Contains(c.Indexes(), x) && !slices.ContainsFunc(list, func(t *Table) bool { return !t.Built(x) }) {
		x.MarkReady()
	}
}

// BuildAtStart builds all indexes, as many partitions at a time as there are processors, and returns how many
// there are. Nothing else may use the containers.
func (b *Builder) BuildAtStart() (count int) {
	containers := slices.DeleteFunc(b.containers(), func(c Container) bool { return len(c.Indexes()) == 0 })
	if len(containers) == 0 {
		return 0
	}
	var wg sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for number := range b.partitions {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			for _, c := range containers {
				c.One(number, func(t *Table) {
					if t != nil {
						t.BuildAll()
					}
				})
			}
		})
	}
	wg.Wait()
	for _, c := range containers {
		for _, x := range c.Indexes() {
			x.MarkReady()
			count++
		}
	}
	return count
}
