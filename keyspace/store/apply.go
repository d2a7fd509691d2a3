package store

import (
	"cmp"
	"sync"
)

// syncsAtOnce is the number of stores that are forced to disk in parallel while others are written: file
// systems commit several together.
const syncsAtOnce = 4

// ApplyAndSync calls apply and then sync for the stores 0 to n-1. It applies to one while others are synced
// in goroutines. It returns the first error, after it has tried all stores.
func ApplyAndSync(n int, apply, force func(i int) error) error {
	errs := make([]error, n)
	places := make(chan struct{}, syncsAtOnce)
	var syncs sync.WaitGroup
	for i := range n {
		if errs[i] = apply(i); errs[i] != nil {
			continue
		}
		places <- struct{}{}
		syncs.Go(func() {
			defer func() { <-places }()
			errs[i] = force(i)
		})
	}
	syncs.Wait()
	return cmp.Or(errs...)
}
