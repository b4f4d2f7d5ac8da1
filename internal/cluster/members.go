package cluster

import (
	"context"
	"database/sql"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// member is another node as this one connects to it.
type member struct {
	name, address, pin string
	alive              bool // it has renewed its lease lately
	leased             bool // it may act
	leaving            bool // it is ending
	ended              bool
	load               Load
}

// members are the other nodes as they were last read from the database. The zero value is ready to use.
type members struct {
	reading sync.Mutex // held while they are read

	mu     sync.Mutex     // guards the fields below
	all    []member       // is not changed, but replaced
	placed map[string]int // the runs and sessions that were sent to nodes since they were read
	read   time.Time
}

func (m *members) list() []member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

// Others returns the names of the other nodes that have not ended. reached reports whether a node answers.
func (n *Node) Others() (names []string, reached map[string]bool) {
	if n == nil || n.link == nil {
		return nil, nil
	}
	reached = map[string]bool{}
	for _, m := range n.members.list() {
		if !m.ended {
			names, reached[m.name] = append(names, m.name), m.alive && m.address != ""
		}
	}
	slices.Sort(names)
	return names, reached
}

// Silent returns the names of the other nodes that have not ended and have not renewed their leases lately.
func (n *Node) Silent() (names []string) {
	if n == nil {
		return nil
	}
	for _, m := range n.members.list() {
		if !m.ended && !m.alive {
			names = append(names, m.name)
		}
	}
	return names
}

// named returns the node with a name. If it is not known, it does not answer.
func (m *members) named(name string) (member, bool) {
	all := m.list()
	if i := slices.IndexFunc(all, func(m member) bool { return m.name == name }); i >= 0 {
		return all[i], true
	}
	return member{name: name}, false
}

// pinned returns the node that has a pin and may act.
func (m *members) pinned(pin string) (member, bool) {
	all := m.list()
	i := slices.IndexFunc(all, func(m member) bool { return m.leased && m.pin == pin && pin != "" })
	if i < 0 {
		return member{}, false
	}
	return all[i], true
}

// readMembers reads the other nodes from the database, unless they were read after a time. If the database does not
// answer, those that are known remain: this node has a lease for a while.
func (n *Node) readMembers(ctx context.Context, after time.Time) {
	n.members.reading.Lock()
	defer n.members.reading.Unlock()
	if n.members.read.After(after) {
		return
	}
	begun := time.Now()
	all, err := database.Rows(ctx, n.db, "SELECT name, address, pin, heartbeat > unixepoch() - ?, "+Live+
		", heartbeat = 0, leaving = 1, busy, sandboxes FROM node WHERE name <> ?", []any{seconds(silentAfter), n.name},
		func(rows *sql.Rows) (m member, err error) {
			err = rows.Scan(&m.name, &m.address, &m.pin, &m.alive, &m.leased, &m.ended, &m.leaving, &m.load.Busy,
				&m.load.Sandboxes)
			return m, err
		})
	if err != nil {
		if ctx.Err() == nil {
			n.logger.WarnContext(ctx, "the nodes of the cluster could not be read", slog.Any(telemetry.KeyError, err))
		}
		return
	}
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	n.members.all, n.members.placed, n.members.read = all, nil, begun
}
