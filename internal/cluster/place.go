package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// SchemaLoads adds how busy nodes are, and which of them are ending.
const SchemaLoads = `
ALTER TABLE node ADD COLUMN busy INTEGER NOT NULL DEFAULT 0;      -- sandboxes that are in use or waited for
ALTER TABLE node ADD COLUMN sandboxes INTEGER NOT NULL DEFAULT 0; -- how many can be in use at once
ALTER TABLE node ADD COLUMN leaving INTEGER NOT NULL DEFAULT 0;   -- 1: it is ending, and begins nothing`

// announceTime is how long a node waits for the database when it stores its load.
const announceTime = 2 * time.Second

// Load is how busy a node is.
type Load struct {
	Busy      int `json:"busy"`      // sandboxes that are in use or waited for
	Sandboxes int `json:"sandboxes"` // how many can be in use at once
}

func (l Load) free() int { return l.Sandboxes - l.Busy }

// ReportLoad stores how busy the node is for the others, now and with each heartbeat.
func (n *Node) ReportLoad(ctx context.Context, load func() Load) {
	if n == nil {
		return
	}
	n.load.Store(&load)
	n.announce(ctx)
}

// announce stores at once how busy this node is, and whether it is ending.
func (n *Node) announce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	if _, err := n.renew(ctx, "unixepoch()"); err != nil { // the next heartbeat stores it
		n.logger.WarnContext(ctx, "the state of this node could not be stored", slog.Any(telemetry.KeyError, err))
	}
}

func (n *Node) currentLoad() (_ Load, known bool) {
	load := n.load.Load()
	if load == nil {
		return Load{}, false
	}
	return (*load)(), true
}

// Leave announces that this node is ending. From now on, new sessions and runs that clients open at this node are
// forwarded to another one, if there is one. Then Leave waits until ctx ends or the others have read that this node is
// ending, because until then they send it what it should begin.
func (n *Node) Leave(ctx context.Context) {
	if n == nil {
		return
	}
	n.leaving.Store(true)
	n.announce(ctx)
	if !n.Leaving() || n.Check() != nil {
		return
	}
	select {
	case <-time.After(heartbeatInterval):
	case <-ctx.Done():
	}
}

// Leaving reports whether this node is ending and another one begins what clients ask for.
func (n *Node) Leaving() bool {
	return n != nil && n.link != nil && n.leaving.Load() && len(n.members.staying()) > 0
}

// ForwardNew passes a request that begins something to the node that should begin it: the home of its session, see
// Keep, or the one that elsewhere returns, or the next one if that cannot be reached. session may be empty. ForwardNew
// returns false if this node should begin it. If the connection ends before the answer, it calls failed: whether the
// other node has begun is not known.
func (n *Node) ForwardNew(w http.ResponseWriter, r *http.Request, session string, failed func()) bool {
	about, known := r.Context().Value(forwardingKey{}).(forwarding)
	if !known || about.forwarded {
		return false
	}
	repeatable(r)
	to, found := n.home(r.Context(), session)
	for unreached := map[string]bool{}; ; unreached[to.name], found = true, false {
		if !found {
			to, found = n.elsewhere(unreached)
		}
		if !found || to.name == n.name {
			return false
		}
		sent := true
		n.pass(w, r, about, to, func(err error) {
			if sent = !errors.Is(err, errNotConnected); sent {
				failed()
			}
		})
		if sent {
			return true
		}
		if r.GetBody != nil { // the attempt has read the body
			r.Body, _ = r.GetBody()
		}
	}
}

// elsewhere returns the node that should begin what a client begins at this one: the less busy of two random nodes, if
// this one is ending, or if it has no free sandbox and that one does (Mitzenmacher, The Power of Two Choices in
// Randomized Load Balancing, 2001). The loads of the others are some seconds old, so requests that were sent to them
// meanwhile count as well. It returns none of those that could not be reached.
func (n *Node) elsewhere(unreached map[string]bool) (member, bool) {
	leaving := n.leaving.Load()
	if load, known := n.currentLoad(); !leaving && (!known || load.free() > 0) {
		return member{}, false
	}
	others := slices.DeleteFunc(n.members.staying(), func(m member) bool { return unreached[m.name] })
	if len(others) == 0 {
		return member{}, false
	}
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	to := slices.MaxFunc(others[:min(2, len(others))], func(a, b member) int { return a.load.free() - b.load.free() })
	if !leaving && to.load.free() <= 0 {
		return member{}, false
	}
	n.members.sent(to.name)
	return to, true
}

// staying returns the nodes that begin what clients ask for, with what was sent to them since they were read.
func (m *members) staying() (nodes []member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range m.all {
		if node.alive && node.leased && !node.leaving && node.address != "" {
			node.load.Busy += m.placed[node.name]
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// sent notes that something was sent to a node to be begun there.
func (m *members) sent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.placed == nil {
		m.placed = map[string]int{}
	}
	m.placed[name]++
}
