package upstreams

import (
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/catalog"
)

// changes passes changes at the servers on to the face for hosts.
type changes struct {
	mu      sync.Mutex
	lists   func(before, now *catalog.Snapshot) // nil: nobody follows
	updated func(owner, serverID, uri string)
	pending map[update]bool
	flush   *time.Timer
}

// update is a change of a resource. The owner is the principal of the connection, or empty if callers share it.
type update struct{ owner, serverID, uri string }

// A server may send that a resource has changed as often as it likes. Hosts hear of it once in updateEvery.
const (
	updateEvery = 100 * time.Millisecond
	maxUpdates  = 1000 // that wait
)

// OnUpdates sets the functions that are called after a change of the definitions, and when a resource has changed. The
// owner is the principal of the connection, or empty if callers share it.
func (c *Catalog) OnUpdates(lists func(before, now *catalog.Snapshot), updated func(owner, serverID, uri string)) {
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	c.changes.lists, c.changes.updated = lists, updated
}

// listed is called after a change of the definitions.
func (c *changes) listed(before, now *catalog.Snapshot) {
	c.mu.Lock()
	tell := c.lists
	c.mu.Unlock()
	if tell != nil {
		tell(before, now)
	}
}

// updates returns the function for one set of connections that is called when a resource has changed. owner returns
// whose connection to a server it is.
func (c *changes) updates(owner func(serverID string) string) func(serverID, uri string) {
	return func(serverID, uri string) { c.note(update{owner(serverID), serverID, uri}) }
}

func (c *changes) note(u update) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.updated == nil || len(c.pending) >= maxUpdates {
		return
	}
	if c.pending == nil {
		c.pending = map[update]bool{}
		c.flush = time.AfterFunc(updateEvery, c.tell)
	}
	c.pending[u] = true
}

func (c *changes) tell() {
	c.mu.Lock()
	pending, tell := c.pending, c.updated
	c.pending = nil
	c.mu.Unlock()
	for u := range pending {
		if tell != nil {
			tell(u.owner, u.serverID, u.uri)
		}
	}
}

// close ends the notifications.
func (c *changes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists, c.updated = nil, nil
	if c.flush != nil {
		c.flush.Stop()
	}
}

// ownerOf returns whose the connections of the catalog are.
func (c *Catalog) ownerOf(serverID string) string {
	if server, found := c.config.Load().Server(serverID); found && IsPersonal(server) {
		return setup.Principal()
	}
	return ""
}
