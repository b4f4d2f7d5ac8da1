package schema

import (
	"encoding/json"
	"sync"
)

// maxCached is how many compiled schemas a Cache keeps.
const maxCached = 4096

// Cache compiles each schema once. The zero value is ready; it may be used concurrently.
type Cache struct {
	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	once   sync.Once
	schema *Schema
	err    error
}

// Get returns the compiled schema for key, which must identify exactly these bytes, such
// as their digest. Errors are cached too.
func (c *Cache) Get(key string, raw json.RawMessage) (*Schema, error) {
	e := c.entry(key)
	e.once.Do(func() { e.schema, e.err = Compile(raw) })
	return e.schema, e.err
}

func (c *Cache) entry(key string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		return e
	}
	if c.entries == nil || len(c.entries) >= maxCached {
		// Old snapshots' schemas go all at once: they come back in a millisecond each.
		c.entries = map[string]*entry{}
	}
	e := &entry{}
	c.entries[key] = e
	return e
}
