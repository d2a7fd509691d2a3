package keyspace

// Prepare copies and checksums a large body before the transaction begins, so that Put of this very string does not do
// it under the lock. What is prepared is forgotten when the transaction closes; until then the string must not change.
func (tx *Tx) Prepare(body string) { tx.bodies.Copy(body) }

// Adopt is Prepare for a string that nobody ever changes: Put takes it over without a copy. It may be called while the
// transaction runs.
func (tx *Tx) Adopt(body string) { tx.bodies.Own(body) }
