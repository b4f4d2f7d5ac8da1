package codegen

import (
	"bytes"
	"reflect"
	"sync"

	"github.com/airlock-mcp/airlock/catalog"
)

// Cache stores generated wrappers, so that if one of many tools changes, only that one is
// generated again. It does not change the result. The zero value is an empty cache. It is
// safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	calls int
	made  map[cacheKey]*made
}

// keptCalls is for how many calls what none of them used is kept.
const keptCalls = 8

// cacheKey names what was made of a tool: its usage, or its file.
type cacheKey struct {
	usage        bool
	language     string
	server, tool string
}

// made is what was made of a tool under the names it had.
type made struct {
	wrapper  wrapper // without its module and shapes
	module   string
	tool     catalog.Tool
	warnings []Warning
	file     []byte
	usage    catalog.Usage
	call     int // the last one that used it
}

// Generate is the function of that name.
func (c *Cache) Generate(servers []catalog.Server, lang Language) (*Tree, error) {
	return generate(servers, lang, c)
}

// Usages is the function of that name.
func (c *Cache) Usages(servers []catalog.Server, lang Language) (map[catalog.ToolRef]catalog.Usage, error) {
	return usages(servers, lang, c)
}

// begin counts a call and forgets what was not used for long. No cache stays none.
func (c *Cache) begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	for key, m := range c.made {
		if m.call < c.calls-keptCalls {
			delete(c.made, key)
		}
	}
}

// find returns what was made of the same tool under the same names, or nil.
func (c *Cache) find(key cacheKey, w *wrapper) *made {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.made[key]
	if m == nil || m.module != w.module.name || !m.wrapper.sameNames(w) || !sameTool(&m.tool, w.tool) {
		return nil
	}
	m.call = c.calls
	return m
}

// keep remembers what was made of a wrapper's tool.
func (c *Cache) keep(key cacheKey, w *wrapper, m made) {
	if c == nil {
		return
	}
	m.wrapper, m.module, m.tool = *w, w.module.name, *w.tool
	m.wrapper.module, m.wrapper.tool, m.wrapper.input, m.wrapper.output = nil, nil, nil, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	m.call = c.calls
	if c.made == nil {
		c.made = map[cacheKey]*made{}
	}
	c.made[key] = &m
}

func (w *wrapper) sameNames(other *wrapper) bool {
	return w.name == other.name && w.alias == other.alias && w.stem == other.stem && w.types == other.types
}

// sameTool compares all that is written of a tool.
func sameTool(a, b *catalog.Tool) bool {
	return a.Digest == b.Digest && a.Name == b.Name && a.Title == b.Title && a.Description == b.Description &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) &&
		(a.OutputSchema == nil) == (b.OutputSchema == nil) && reflect.DeepEqual(a.Annotations, b.Annotations)
}
