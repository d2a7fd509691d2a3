package keyspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// numbers returns the numbers of the containers that are no databases, by name.
func (o *opened) numbers() map[string]uint32 {
	o.t.Helper()
	all := make(map[string]uint32)
	var tx Tx
	o.BeginNone(&tx)
	for _, c := range tx.Containers() {
		if tx.ContainerOfDB(c.DB()) != c {
			o.t.Errorf("number %d is not that of %s", c.DB(), c.Name())
		}
		if !c.IsDatabase() {
			all[c.Name()] = c.DB()
		}
	}
	o.commit(&tx)
	return all
}

// create creates a container and returns its number, or the error.
func (o *opened) create(name string, db uint32) (number uint32, err error) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) {
		c, failed := tx.CreateNumbered(name, db, expiry.Off, expiry.Strict)
		if err = failed; err == nil {
			number = c.DB()
		}
	})
	return number, err
}

func (o *opened) drop(name string) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container(name)) })
}

func TestNumbersOfContainers(t *testing.T) {
	t.Parallel()
	o := open(t)
	expect := func(name string, db, want uint32) {
		t.Helper()
		if got, err := o.create(name, db); got != want || err != nil {
			t.Errorf("container %s has number %d, %v, not %d", name, got, err, want)
		}
	}
	refuse := func(name string, db uint32, want error) {
		t.Helper()
		if got, err := o.create(name, db); err == nil || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", want) || err.Error() != want.Error() {
			t.Errorf("container %s with number %d: %d, %v", name, db, got, err)
		}
	}
	expect("a", 0, 16)
	expect("18", 0, 18)
	expect("chosen", 19, 19)
	expect("b", 0, 17)
	expect("c", 0, 20)
	refuse("16", 0, &TakenError{Number: 16, By: "a"})
	refuse("x", 19, &TakenError{Number: 19, By: "chosen"})
	refuse("22", 23, &ownError{Number: 22})
	expect("022", 0, 21)
	expect("1048576", 0, 22)
	expect("1048575", 0, MaxDB)
	o.drop("1048576")
	o.drop("a")
	for range 2 {
		o.reopen()
		expect("later", 0, 23)
		o.drop("later")
		o.catalogueTx(func(tx *Tx) { // as if it had not been
			zero := tx.ContainerOfDB(0)
			zero.lastDB = 22
			tx.recordContainer(zero)
		})
	}
	o.catalogueTx(func(tx *Tx) { tx.ContainerOfDB(0).lastDB = MaxDB - 1 })
	expect("around", 0, 16)
}

// TestNumbersStay: a random history with rollbacks, crashes and restarts changes no number of a container
// that exists.
func TestNumbersStay(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	r := rand.New(rand.NewPCG(3, 8))
	want := make(map[string]uint32)
	given := make(map[uint32]string)
	for range 600 {
		name := fmt.Sprint("c-", r.IntN(12))
		_, exists := want[name]
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			if exists {
				continue
			}
			db, err := o.create(name, 0)
			if err != nil || given[db] != "" {
				t.Fatalf("%s has number %d of %q, %v", name, db, given[db], err)
			}
			want[name], given[db] = db, name
		case 4, 5:
			if exists {
				o.drop(name)
				delete(want, name)
			}
		case 6:
			o.put("0", name, "{}", expiry.Inherit)
			o.catalogueTx(func(tx *Tx) {
				if c := tx.Container(name); c != nil {
					tx.Swap(c, tx.Container("0"))
					tx.Flush(c)
				}
				tx.Flush(tx.Container("0"))
			})
		case 7:
			var tx Tx
			o.BeginAll(&tx)
			if c := tx.Container(name); c != nil {
				tx.Drop(c)
				tx.CreateContainer(name, 3, expiry.Strict)
			}
			tx.CreateContainer("rolled-back", 3, expiry.Strict)
			drill.Check(t, o.Wait(tx.Rollback()))
		case 8:
			if r.IntN(4) == 0 {
				o.reopen()
			}
		case 9:
			o.policy("0", expiry.TTL(1+r.IntN(9)))
		}
		got := o.numbers()
		for name, db := range want {
			if got[name] != db {
				t.Fatalf("%s has number %d, had %d", name, got[name], db)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("containers are %v, not %v", got, want)
		}
	}
}

// TestMissingNumbersAreGiven: a repair leaves containers without a number, or two with the same.
func TestMissingNumbersAreGiven(t *testing.T) {
	t.Parallel()
	o := open(t)
	for _, name := range []string{"a", "b", "c", "30"} {
		o.policy(name, expiry.Off)
	}
	o.catalogueTx(func(tx *Tx) {
		for name, db := range map[string]uint32{"a": 0, "b": 18, "c": 30, "0": 77, "30": 0} {
			tx.noteContainer(tx.Container(name))
			c := newContainer(tx.Container(name).record(), len(o.partitions))
			c.db = db
			tx.recordContainer(c)
			o.catalogue.Changed(tx.Container(name))
		}
	})
	drill.Check(t, o.Halt())
	opt := o.opt
	opt.Dir = newDir(o.opt.FS)
	copyFolder(t, o.opt.FS, o.Dir(), opt.Dir)
	again := &opened{t: t, clock: o.clock, opt: opt}
	again.start()
	defer again.stop()
	got := again.numbers()
	if got["b"] != 18 || got["30"] != 30 || got["c"] != 19 || got["a"] != 20 || len(got) != 4 {
		t.Errorf("numbers are %v", got)
	}
}

func TestRestoredContainersKeepTheirNumber(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("taken", expiry.Off)
	o.catalogueTx(func(tx *Tx) {
		for _, want := range []struct {
			name      string
			db, given uint32
		}{{"a", 40, 40}, {"b", 16, 17}, {"taken", 50, 16}, {"c", 0, 18}} {
			c, err := tx.RestoreContainer(record.Container{Name: want.name, DB: want.db})
			if err != nil || c.DB() != want.given {
				t.Errorf("%s has number %d, %v", want.name, c.DB(), err)
			}
		}
		var taken *TakenError
		if _, err := tx.RestoreContainer(record.Container{Name: "40", DB: 40}); !errors.As(err, &taken) {
			t.Errorf("the error is %v", err)
		}
	})
}
