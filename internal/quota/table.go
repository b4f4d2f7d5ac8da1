package quota

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"
)

// Table maps keys to values. Its number of entries is limited, in total and per account. Beyond the
// limit of an account, the account's least recently used entry is evicted. Beyond the limit in
// total, the least recently used one of all is evicted. An entry in use is never evicted. A Table is
// safe for concurrent use.
type Table[K comparable, V any] struct {
	limit Limit
	now   func() time.Time

	mu      sync.Mutex // guards what follows
	entries map[K]*entry[K, V]
	all     list.List             // of *entry; the least recently used one is the first
	of      map[string]*list.List // likewise, by account; none is empty
}

// entry is one entry of a table.
type entry[K comparable, V any] struct {
	key     K
	value   V
	account string
	users   int
	last    time.Time // when it was added, or its last use began or ended
	in, own *list.Element
}

// Evicted is an entry that was removed to make room for others.
type Evicted[K comparable, V any] struct {
	Key   K
	Value V
}

// NewTable returns an empty table.
func NewTable[K comparable, V any](l Limit) *Table[K, V] {
	return &Table[K, V]{limit: l, now: time.Now, entries: map[K]*entry[K, V]{}, of: map[string]*list.List{}}
}

// At sets the clock of the table. It is for tests.
func (t *Table[K, V]) At(now func() time.Time) *Table[K, V] {
	t.now = now
	return t
}

// Add adds an entry, which is in use until done is called, and returns the entries that it evicts.
// An earlier entry of the key is replaced. If the limit is reached and no entry can be evicted, the
// error is a *Refusal.
func (t *Table[K, V]) Add(account string, key K, value V) (done func(), evicted []Evicted[K, V], err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if evicted, err = t.makeRoomLocked(account, key); err != nil {
		return func() {}, evicted, err
	}
	e := &entry[K, V]{key: key, value: value, account: account}
	t.addLocked(e)
	return t.useLocked(e), evicted, nil
}

// makeRoomLocked evicts entries until one of an account can be added.
func (t *Table[K, V]) makeRoomLocked(account string, key K) (evicted []Evicted[K, V], err error) {
	t.removeLocked(t.entries[key])
	if t.limit.Total > 0 && int64(len(t.entries)) >= t.limit.Total {
		now := t.now()
		for e := t.all.Front(); e != nil; {
			old := t.at(e)
			if e = e.Next(); t.idleLocked(old, now) {
				t.removeLocked(old)
				evicted = append(evicted, Evicted[K, V]{old.key, old.value})
			}
		}
	}
	own := t.of[account]
	if t.limit.Each > 0 && own != nil && int64(own.Len()) >= t.limit.Each {
		if !t.evictLocked(own, &evicted) {
			return evicted, &Refusal{t.limit.Resource, OfAccount}
		}
	}
	if t.limit.Total > 0 && int64(len(t.entries)) >= t.limit.Total {
		if t.limit.Shared || !t.evictLocked(&t.all, &evicted) {
			return evicted, &Refusal{t.limit.Resource, OfAll}
		}
	}
	return evicted, nil
}

// Get returns the value of a key. It is not a use of the entry.
func (t *Table[K, V]) Get(key K) (value V, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.findLocked(key); e != nil {
		return e.value, true
	}
	return value, false
}

// Use is Get with a use of the entry, which lasts until done is called. done may be called more
// than once.
func (t *Table[K, V]) Use(key K) (value V, done func(), known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.findLocked(key)
	if e == nil {
		return value, func() {}, false
	}
	return e.value, t.useLocked(e), true
}

// findLocked returns the entry of a key, or nil if it has been idle for too long.
func (t *Table[K, V]) findLocked(key K) *entry[K, V] {
	if e := t.entries[key]; e != nil && !t.idleLocked(e, t.now()) {
		return e
	}
	return nil
}

func (t *Table[K, V]) idleLocked(e *entry[K, V], now time.Time) bool {
	return t.limit.Idle > 0 && e.users == 0 && now.Sub(e.last) >= t.limit.Idle
}

// useLocked begins a use of an entry.
func (t *Table[K, V]) useLocked(e *entry[K, V]) (done func()) {
	e.users++
	t.touchLocked(e)
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		e.users--
		if t.entries[e.key] == e {
			t.touchLocked(e)
		}
	})
}

// Rename gives an entry another key. Uses of the entry continue.
func (t *Table[K, V]) Rename(key, to K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	if e == nil || key == to {
		return
	}
	t.removeLocked(t.entries[to])
	delete(t.entries, key)
	e.key = to
	t.entries[to] = e
}

// Remove removes the entry of a key, and returns its value.
func (t *Table[K, V]) Remove(key K) (value V, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	if e == nil {
		return value, false
	}
	t.removeLocked(e)
	return e.value, true
}

// RemoveFunc removes the entries whose keys satisfy remove, and returns their values.
func (t *Table[K, V]) RemoveFunc(remove func(K) bool) []V {
	t.mu.Lock()
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(t.entries)), func(key K) bool { return !remove(key) })
	t.mu.Unlock()
	var all []V
	for _, key := range keys {
		if value, known := t.Remove(key); known {
			all = append(all, value)
		}
	}
	return all
}

// Clear removes and returns all values.
func (t *Table[K, V]) Clear() []V {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []V
	for e := t.all.Front(); e != nil; e = t.all.Front() {
		all = append(all, t.at(e).value)
		t.removeLocked(t.at(e))
	}
	return all
}

// Len returns the number of entries.
func (t *Table[K, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}

func (t *Table[K, V]) at(e *list.Element) *entry[K, V] { return e.Value.(*entry[K, V]) }

// evictLocked moves the least recently used entry of a list that is not in use to evicted. It
// returns false if all are in use.
func (t *Table[K, V]) evictLocked(from *list.List, evicted *[]Evicted[K, V]) bool {
	for e := from.Front(); e != nil; e = e.Next() {
		if old := t.at(e); old.users == 0 {
			t.removeLocked(old)
			*evicted = append(*evicted, Evicted[K, V]{old.key, old.value})
			return true
		}
	}
	return false
}

func (t *Table[K, V]) addLocked(e *entry[K, V]) {
	own := t.of[e.account]
	if own == nil {
		own = list.New()
		t.of[e.account] = own
	}
	t.entries[e.key] = e
	e.in, e.own = t.all.PushBack(e), own.PushBack(e)
}

// touchLocked marks an entry as the most recently used one.
func (t *Table[K, V]) touchLocked(e *entry[K, V]) {
	e.last = t.now()
	t.all.MoveToBack(e.in)
	t.of[e.account].MoveToBack(e.own)
}

// removeLocked removes an entry, which may be nil.
func (t *Table[K, V]) removeLocked(e *entry[K, V]) {
	if e == nil {
		return
	}
	delete(t.entries, e.key)
	t.all.Remove(e.in)
	own := t.of[e.account]
	if own.Remove(e.own); own.Len() == 0 {
		delete(t.of, e.account)
	}
}
