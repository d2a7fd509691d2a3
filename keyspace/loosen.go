package keyspace

import (
	"errors"

	"github.com/tidwall/buntdb"
)

// When a node of buntdb's tree splits, both halves go on in one array, each in its part, until
// something comes into a half and makes it move to an array of its own. A half that has moved leaves its
// pointers behind, and they keep alive what is overwritten or deleted there later, for as long as the
// other half does not move. Nothing ever comes into the lower halves if keys come in ascending order:
// then the tree holds every item twice once all have been overwritten. Therefore
//
//   - what a checkpoint has captured is applied in a random order (arrange.go),
//   - and a tree that was loaded, maybe from a file in ascending order, is loosened: something comes into
//     every half, in a transaction that is rolled back.
const loosenEvery = 48 // items; a half has 127

var errLoosened = errors.New("nothing of this is to be kept")

// loosen is to be called when a store has been opened, before it is used.
func (s *store) loosen(keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), maxTxOps)
		err := s.file.db.Update(func(tx *buntdb.Tx) error {
			for _, key := range keys[:n] {
				// Wherever in the tree this comes, it comes beside the key; if there is such an item, it is
				// as it was afterwards.
				if _, _, err := tx.Set(key+"\x00", "", nil); err != nil {
					return err
				}
			}
			return errLoosened
		})
		if err != errLoosened {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
