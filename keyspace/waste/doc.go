// Package waste decides how long overwritten and deleted data may stay in files.
//
// Waste is text in a store that no longer belongs to an item: an overwritten record, a deleted one, a delete. A checkpoint
// that writes such a change notes its moment for the store, and keeps the moments in the catalogue under [record.WasteKey].
// [Age] says how old the waste of a store may become. Then the store is compacted, whatever its size.
//
// The package is pure: it reads no file and no clock.
package waste
