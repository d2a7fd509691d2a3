package keyspace

// BeginDetached begins a transaction that has no keyspace, at a time in ms. Only Now and Close may be used.
func (tx *Tx) BeginDetached(now int64) { tx.now = now }
