package forming

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

func example() *Identity {
	return &Identity{Cluster: clusterX, ID: 2, Name: "b", Stage: Formed, Founder: "a", FoundedWithData: true, Members: membersABC(1)}
}

func TestIdentityRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []*Identity{
		example(),
		{Cluster: 1<<63 - 1, ID: 7, Name: "b", Stage: Joining, Joined: true},
		{Name: "b", Stage: Lost},
		nil,
	} {
		dir := filepath.Join(t.TempDir(), "cluster")
		if want == nil {
			drill.Check(t, write(filepath.Dir(dir), nil))
		} else if err := write(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v is read as %+v, %v", want, got, err)
		}
		if want == nil {
			continue
		}
		fi, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", fi, err)
		}
		drill.Check(t, write(dir, nil))
		if got, err := Read(dir); got != nil || err != nil {
			t.Errorf("removed, but read as %+v, %v", got, err)
		}
	}
}

// Every wrong bit and every lost end is noticed: an id that was not written never votes.
func TestDamagedIdentity(t *testing.T) {
	t.Parallel()
	text := example().marshal()
	for at := range text {
		for bit := range 8 {
			b := []byte(string(text))
			b[at] ^= 1 << bit
			if got, err := unmarshal(b); err == nil {
				t.Errorf("bit %d of byte %d is read as %+v", bit, at, got)
			}
		}
		if _, err := unmarshal(text[:at]); err == nil {
			t.Errorf("the first %d bytes are accepted", at)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for name, content := range map[string]string{"empty": "", "cut": string(text[:50]), "more": string(text) + "\n", "long": strings.Repeat(" ", 2<<20)} {
		drill.Check(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := New(Config{Dir: dir, Name: "b", Log: zerolog.Nop()})
		if damaged := (*DamageError)(nil); !errors.As(err, &damaged) || damaged.File != path {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// That of a newer program is not damaged: it must not be thrown away.
	newer := strings.Replace(string(text), `"version": 1`, `"version": 2`, 1)
	drill.Check(t, os.WriteFile(path, []byte(newer), 0o600))
	_, err := New(Config{Dir: dir, Name: "b", Log: zerolog.Nop()})
	if version := (*VersionError)(nil); !errors.As(err, &version) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	drill.Check(t, WriteLost(dir, "b"))
	if f, err := New(Config{Dir: dir, Name: "b", Log: zerolog.Nop()}); err != nil || f.Identity().Stage != Lost {
		t.Errorf("got %v, %v", f, err)
	}
}

// Identities that no node writes are damage, though their checksum is right.
func TestImpossibleIdentities(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(i *Identity){
		"no id":          func(i *Identity) { i.ID = 0 },
		"no cluster":     func(i *Identity) { i.Cluster = 0 },
		"other id":       func(i *Identity) { i.ID = 3 },
		"unknown stage":  func(i *Identity) { i.Stage = "leading" },
		"no members":     func(i *Identity) { i.Members = nil },
		"same names":     func(i *Identity) { i.Members[0].Name = "c" },
		"same ids":       func(i *Identity) { i.Members[0].ID = 3 },
		"same addresses": func(i *Identity) { i.Members[0].Addr = i.Members[2].Addr },
		"no address":     func(i *Identity) { i.Members[0].Addr = "" },
		"long name":      func(i *Identity) { i.Members[0].Name = strings.Repeat("x", 2000) },
	} {
		i := example()
		change(i)
		if got, err := unmarshal(i.marshal()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

// A node does not take over the folder of another one.
func TestFolderOfAnotherNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drill.Check(t, write(dir, example()))
	_, err := New(Config{Dir: dir, Name: "c", Log: zerolog.Nop()})
	if err == nil || !strings.Contains(err.Error(), "the data folder belongs to node b of a cluster, not to c") {
		t.Errorf("got %v", err)
	}
}

// Lose takes the id away on disk first; the cluster and its members stay known.
func TestLose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drill.Check(t, write(dir, example()))
	f, err := New(Config{Dir: dir, Name: "b", Log: zerolog.Nop()})
	drill.Check(t, err)
	works := f.write
	f.write = func(string, *Identity) error { return errors.New("the disk fails") }
	if err := f.Lose(); err == nil || f.Identity().Stage != Formed {
		t.Errorf("%v; %+v", err, f.Identity())
	}
	f.write = works
	drill.Check(t, f.Lose())
	want := &Identity{Cluster: clusterX, Name: "b", Stage: Lost, Members: membersABC(1)}
	got, err := Read(dir)
	if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(f.Identity(), want) {
		t.Errorf("%+v, %v; in memory %+v", got, err, f.Identity())
	}
}

// FuzzIdentity takes any file without a panic, and accepts only what it writes itself.
func FuzzIdentity(f *testing.F) {
	f.Add(example().marshal())
	f.Add((&Identity{Name: "b", Stage: Lost}).marshal())
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if i, err := unmarshal(text); err == nil && string(i.marshal()) != string(text) {
			t.Errorf("%q is read as %+v", text, i)
		}
	})
}

// FuzzRequest takes any control request without a panic. None of them makes a node a member, or one that has
// data or an identity another node.
func FuzzRequest(f *testing.F) {
	form, _ := json.Marshal(formRequest{Identity{Cluster: clusterX, ID: 2, Name: "b", Stage: Prepared, Founder: "a", Members: membersABC(1)}, 1})
	join, _ := json.Marshal(joinRequest{Cluster: clusterX, To: "b", Member: Member{Name: "c", ID: 9, Addr: "h3:1"}})
	hello, _ := json.Marshal(helloRequest{From: "a", To: "b", Peers: abc})
	for _, path := range []string{pathHello, pathForm, pathJoin, "/cluster/x"} {
		for _, body := range []string{string(form), string(join), string(hello), "", "{}", "[]", "null", `{"members":[{}]}`} {
			f.Add(path, body)
		}
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		for _, own := range []*Identity{nil, example(), {Name: "b", Stage: Lost}} {
			for _, data := range []bool{false, true} {
				former := &Former{identity: own.clone(), run: 1, changed: make(chan struct{}), one: true, newID: randomID}
				former.config = Config{Name: "b", Addr: "h2:1", Peers: abc, HasData: data, Log: zerolog.Nop()}
				former.write = func(string, *Identity) error { return nil }
				_, _ = former.answer(t.Context(), path, []byte(body))
				after := former.identity
				if own != nil || data {
					if !reflect.DeepEqual(after, own) {
						t.Fatalf("%+v with data %v became %+v", own, data, after)
					}
				} else if after != nil && (after.Stage != Prepared || after.check() != nil || after.Name != "b") {
					t.Fatalf("it became %+v", after)
				}
			}
		}
	})
}
