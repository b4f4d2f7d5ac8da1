package quota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// add adds an entry whose first use ends at once, and returns the keys of the evicted entries.
func add(table *Table[string, int], account, key string) (evicted []string, err error) {
	done, removed, err := table.Add(account, key, 0)
	done()
	for _, e := range removed {
		evicted = append(evicted, e.Key)
	}
	return evicted, err
}

// If an account exceeds its limit, its least recently used entry is evicted, but never one in use.
func TestTableOfOneAccount(t *testing.T) {
	const each = 5
	table := NewTable[string, int](Limit{Each: each})
	for n := range each {
		if evicted, err := add(table, "ann", fmt.Sprint(n)); evicted != nil || err != nil {
			t.Fatalf("entry %d: got %q and %v", n, evicted, err)
		}
	}
	_, done, _ := table.Use("0") // was used more recently than 1
	done()
	_, streamEnds, _ := table.Use("1")
	for want := range 3 {
		if evicted, err := add(table, "ann", fmt.Sprint("later ", want)); err != nil ||
			!slices.Equal(evicted, []string{fmt.Sprint(want + 2)}) {
			t.Errorf("got %q and %v, want %d evicted", evicted, err, want+2)
		}
	}
	if evicted, err := add(table, "bob", "of bob"); evicted != nil || err != nil {
		t.Errorf("another account: got %q and %v", evicted, err)
	}
	for key, e := range table.entries {
		if e.account == "ann" && key != "1" {
			_, done, _ := table.Use(key)
			defer done()
		}
	}
	if _, err := add(table, "ann", "none"); !isRefused(err) {
		t.Errorf("all are in use: got %v", err)
	}
	streamEnds()
	streamEnds() // a second time does nothing
	if evicted, err := add(table, "ann", "again"); err != nil || !slices.Equal(evicted, []string{"1"}) {
		t.Errorf("one is not in use any more: got %q and %v", evicted, err)
	}
}

// A table that is shared does not evict entries of other accounts, except idle ones.
func TestSharedTable(t *testing.T) {
	now := time.Unix(0, 0)
	table := NewTable[string, int](Limit{Total: 4, Each: 2, Shared: true, Idle: time.Minute}).
		At(func() time.Time { return now })
	for n := range 4 {
		if _, err := add(table, fmt.Sprint(n/2), fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := add(table, "ann", "x"); !isRefused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	table.Remove("3")
	if evicted, err := add(table, "ann", "x"); err != nil || evicted != nil {
		t.Errorf("one was removed: got %q and %v", evicted, err)
	}
	if evicted, err := add(table, "0", "own"); err != nil || !slices.Equal(evicted, []string{"0"}) {
		t.Errorf("got %q and %v, want its own entry evicted", evicted, err)
	}
	_, done, _ := table.Use("1")
	now = now.Add(2 * time.Minute)
	if evicted, err := add(table, "bob", "y"); err != nil || !slices.Equal(evicted, []string{"2", "x", "own"}) {
		t.Errorf("got %q and %v, want the idle ones evicted", evicted, err)
	}
	done()
	table.Rename("y", "z")
	if _, known := table.Get("y"); known || table.Len() != 2 {
		t.Errorf("a renamed entry has its former key, or %d entries are left", table.Len())
	}
	if got := len(table.Clear()); got != 2 || table.Len() != 0 || len(table.of) != 0 {
		t.Errorf("cleared %d, and %d entries of %d accounts are left", got, table.Len(), len(table.of))
	}
}

// Random use of a table agrees with a plain model of it: a list from the least to the most recently
// used entry.
func TestTableLikeAList(t *testing.T) {
	type row struct{ key, account string }
	const total, each = 6, 3
	random := rand.New(rand.NewPCG(1, 1))
	table := NewTable[string, int](Limit{Total: total, Each: each})
	var model []row
	drop := func(matches func(row) bool) {
		if at := slices.IndexFunc(model, matches); at >= 0 {
			model = slices.Delete(model, at, at+1)
		}
	}
	for range 5000 {
		made := row{fmt.Sprint(random.IntN(12)), fmt.Sprint(random.IntN(4))}
		isKey := func(r row) bool { return r.key == made.key }
		isOwn := func(r row) bool { return r.account == made.account }
		switch random.IntN(4) {
		case 0:
			table.Remove(made.key)
			drop(isKey)
		case 1:
			_, done, known := table.Use(made.key)
			done()
			if at := slices.IndexFunc(model, isKey); known != (at >= 0) {
				t.Fatalf("%s is known: %t", made.key, known)
			} else if known {
				used := model[at]
				model = append(slices.Delete(model, at, at+1), used)
			}
		default:
			drop(isKey)
			own := 0
			for _, r := range model {
				if isOwn(r) {
					own++
				}
			}
			if own >= each {
				drop(isOwn)
			}
			if len(model) >= total {
				model = model[1:]
			}
			model = append(model, made)
			if _, err := add(table, made.account, made.key); err != nil {
				t.Fatal(err)
			}
		}
		var got []row
		for e := table.all.Front(); e != nil; e = e.Next() {
			got = append(got, row{table.at(e).key, table.at(e).account})
		}
		if !slices.Equal(got, model) {
			t.Fatalf("got %v, want %v", got, model)
		}
	}
}
