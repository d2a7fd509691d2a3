package keyspace

// Prepare copies and checksums a large body before the transaction begins. So Put of this very string does
// not do it under the lock. What is prepared is forgotten when the transaction closes; until then the string
// must not change.
func (tx *Tx) Prepare(body string) { tx.bodies.Copy(body) }
