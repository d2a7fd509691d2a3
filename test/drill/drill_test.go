package drill

import (
	"strings"
	"testing"
)

// TestCommand runs under its own speed, so only what all speeds share is compared.
func TestCommand(t *testing.T) {
	want := "go test ./test/drill -run '^TestPowerCut$/^always$' -seed 7"
	if got := command("TestPowerCut/always", 7); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSeedIsGiven(t *testing.T) {
	defer func(was uint64) { *again = was }(*again)
	*again = 7
	if got := Seed(t); got != 7 {
		t.Errorf("seed %d, want 7", got)
	}
}
