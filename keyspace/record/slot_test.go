package record

import (
	"testing"
)

func TestSlot(t *testing.T) {
	t.Parallel()
	// The values of CLUSTER KEYSLOT of Redis 7.
	for id, want := range map[string]int{
		"": 0, "foo": 12182, "123456789": 12739, "{foo}bar": 12182, "x{foo}": 12182,
		"foo{}bar": Slot("foo{}bar"), "{": Slot("{"),
	} {
		if got := Slot(id); got != want {
			t.Errorf("slot of %q is %d, want %d", id, got, want)
		}
	}
	if Slot("foo{}{bar}") == Slot("bar") {
		t.Error("an empty first tag must not make the second one count")
	}
}

// TestSlotOfAnyLength: ids are taken eight bytes at a time, which must give what one bit after the other
// does.
func TestSlotOfAnyLength(t *testing.T) {
	t.Parallel()
	id := make([]byte, 0, 67)
	for i := range cap(id) {
		var crc uint16
		for _, b := range id {
			crc ^= uint16(b) << 8
			for range 8 {
				carry := crc >> 15
				crc = crc<<1 ^ carry*0x1021
			}
		}
		if got := Slot(string(id)); got != int(crc%Slots) {
			t.Errorf("slot of %q is %d, want %d", id, got, crc%Slots)
		}
		id = append(id, byte(i*37+200))
	}
}

func BenchmarkSlot(b *testing.B) {
	for b.Loop() {
		Slot("key:000000123456")
	}
}
