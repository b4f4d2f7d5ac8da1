// Package retention limits the age and the total size of the files in a store. It first
// removes files that are too old, then the oldest ones beyond the size limit.
package retention

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
)

// Defaults of Limits.
const (
	DefaultKeep = 7 * 24 * time.Hour
	DefaultSize = 1 << 30
)

// parts is how often a store is pruned while as much is written as may be kept.
const parts = 16

// Limits bound a store.
type Limits struct {
	Keep time.Duration    // how long an item is kept; 0 means DefaultKeep
	Size int64            // the most bytes of all items; 0 means DefaultSize
	Now  func() time.Time // nil means time.Now
}

// Keeper holds a store to its limits. Its methods may be called concurrently,
// also by several processes with the same files.
type Keeper struct {
	Limits               // complete; not to be changed
	written atomic.Int64 // bytes since the store was pruned
}

// Options of a store of encrypted files. The zero value is usable.
type Options struct {
	// Keys is the directory of the key file; empty means "keys" in the store's own directory.
	Keys string
	Keep time.Duration    // how long an item is kept; 0 means DefaultKeep
	Size int64            // the most bytes of all items; 0 means DefaultSize. The oldest are removed first.
	Now  func() time.Time // nil means time.Now
}

// Open returns the keeper and the key of a store of encrypted files. It creates the directory of the store and the file
// of the key at first use. opts may be nil.
func Open(dir, keyFile string, opts *Options) (*Keeper, *agekey.Key, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Keys == "" {
		o.Keys = filepath.Join(dir, "keys")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	key, err := agekey.LoadOrCreate(filepath.Join(o.Keys, keyFile))
	return New(Limits{Keep: o.Keep, Size: o.Size, Now: o.Now}), key, err
}

// New returns a keeper.
func New(l Limits) *Keeper {
	if l.Keep == 0 {
		l.Keep = DefaultKeep
	}
	if l.Size == 0 {
		l.Size = DefaultSize
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	return &Keeper{Limits: l}
}

// Expired reports whether an item that was last changed at the given time is too old.
func (k *Keeper) Expired(changed time.Time) bool {
	return k.Now().Sub(changed) > k.Keep
}

// Due counts bytes that were written. It reports whether the caller should call Prune:
// each time when a fixed fraction of the size limit was written.
func (k *Keeper) Due(bytes int64) bool {
	if k.written.Add(bytes) < k.Size/parts {
		return false
	}
	k.written.Store(0)
	return true
}

// Changed returns when files were added to a directory, renamed in it or removed from it last.
func Changed(dir string) (time.Time, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Item is a file or a directory that is removed as a whole.
type Item struct {
	Path       string
	Changed    time.Time
	Bytes      int64
	Unfinished bool // still being written: it counts, and stays until it is too old
}

// Prune removes items that are too old, and the oldest ones beyond the size limit. Among
// items with the same time, the first in the list is the oldest. It is not an error if an
// item no longer exists.
func (k *Keeper) Prune(items []Item) error {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Item) int { return a.Changed.Compare(b.Changed) })
	total := int64(0)
	for _, item := range items {
		total += item.Bytes
	}
	var errs []error
	for _, item := range items {
		if tooMuch := total > k.Size && !item.Unfinished; !tooMuch && !k.Expired(item.Changed) {
			continue
		}
		errs = append(errs, os.RemoveAll(item.Path))
		total -= item.Bytes
	}
	return errors.Join(errs...)
}
