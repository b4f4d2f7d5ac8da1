package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

var (
	// ErrReplaced is returned if another process has the name of this node now. It has a hint.
	ErrReplaced error = &SetupError{"another process has replaced this node of the cluster",
		"give each node its own name: cluster.node"}
	// ErrLapsed is returned if the node has not reached the database for longer than Lease.
	ErrLapsed = errors.New("this node has no lease: the database of the cluster does not answer")
)

// Options are the options of Join. Name and Keys are required.
type Options struct {
	Name, Version string
	Keys          Keys
	Address       string // the host and port at which other nodes reach this one; empty: they do not
	Logger        *slog.Logger
}

// Node is this process in its cluster. Its methods are safe for concurrent use. A nil Node is that of a process without
// a cluster.
type Node struct {
	name    string
	epoch   int64
	db      *database.DB
	logger  *slog.Logger
	keys    Keys
	link    *link // nil if other nodes do not reach this one
	members members
	noted   atomic.Int64 // when it was logged last that a node does not answer; seconds since 1970
	load    atomic.Pointer[func() Load]
	leaving atomic.Bool // it is ending
	beating sync.WaitGroup
	stop    context.CancelFunc
	lost    chan struct{} // closed when the node was replaced

	mu      sync.Mutex // guards the fields below
	renewed time.Time  // the time before the last heartbeat that succeeded
	awake   time.Time  // when the process was last seen to run
	// woken is when it continued after it was stopped. Another process may have taken the name meanwhile, so earlier
	// heartbeats do not count.
	woken time.Time
}

// Join makes this process the node of a name. It replaces a process of this name that has ended or has no heartbeat,
// for which it waits, and returns an error if that process lives. The caller must close the node before the database.
func Join(ctx context.Context, db *database.DB, opts Options) (_ *Node, err error) {
	n := &Node{name: opts.Name, db: db, logger: opts.Logger, keys: opts.Keys, lost: make(chan struct{})}
	if opts.Address != "" {
		if n.link, err = openLink(ctx, n, opts.Address); err != nil {
			return nil, err
		}
	}
	if err := n.takeName(ctx, opts.Version); err != nil {
		n.link.close()
		return nil, err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.beating.Go(func() { n.beat(beating) })
	n.beating.Go(func() { n.stayAwake(beating) })
	return n, nil
}

// takeName takes the name, and waits for a process that has it and may have died.
func (n *Node) takeName(ctx context.Context, version string) error {
	var first seen
	for {
		now, err := n.take(ctx, version)
		switch {
		case err != nil:
			return fmt.Errorf("joining the cluster as node %q: %w", n.name, err)
		case n.epoch != 0:
			return nil
		case first == seen{}:
			first = now
		case first != now:
			return &SetupError{fmt.Sprintf("another process serves as node %q of this cluster", n.name),
				"give each node its own name: cluster.node"}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(heartbeatInterval / 4):
		}
	}
}

// seen is the process that has the name.
type seen struct{ epoch, heartbeat int64 }

// take takes the name and sets the epoch, or returns the process that has it.
func (n *Node) take(ctx context.Context, version string) (other seen, err error) {
	begun := time.Now()
	var epoch int64
	err = n.db.Update(ctx, func(tx database.Tx) error {
		epoch, other = 0, seen{}
		var quiet bool
		err := tx.QueryRowContext(ctx, "SELECT epoch, heartbeat, heartbeat <= unixepoch() - ? FROM node WHERE name = ?",
			seconds(silentAfter), n.name).Scan(&other.epoch, &other.heartbeat, &quiet)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || err == nil && !quiet {
			return err
		}
		epoch = other.epoch + 1
		address, pin := n.link.reached()
		_, err = tx.ExecContext(ctx, `INSERT INTO node VALUES (?, ?, ?, ?, unixepoch(), unixepoch(), ?, ?, 0, 0, 0)
			ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, id = excluded.id, version = excluded.version,
			started = excluded.started, heartbeat = excluded.heartbeat, address = excluded.address,
			pin = excluded.pin, busy = 0, sandboxes = 0, leaving = 0`, n.name, epoch, idOf(n.name, epoch), version, address, pin)
		if err == nil { // the files of sessions have ended with their processes
			_, err = tx.ExecContext(ctx, "DELETE FROM session_home WHERE node NOT IN "+
				"(SELECT id FROM node WHERE heartbeat <> 0)")
		}
		return err
	})
	if err == nil {
		n.epoch, n.renewed, n.awake = epoch, begun, time.Now()
	}
	return other, err
}

func idOf(name string, epoch int64) string { return fmt.Sprintf("%s/%d", name, epoch) }

// Name returns the name, or "" without a cluster.
func (n *Node) Name() string {
	if n == nil {
		return ""
	}
	return n.name
}

// Address returns where other nodes reach this one, or "" if they do not.
func (n *Node) Address() string {
	if n == nil {
		return ""
	}
	address, _ := n.link.reached()
	return address
}

// ID returns the name with the epoch, or "" without a cluster.
func (n *Node) ID() string {
	if n == nil {
		return ""
	}
	return idOf(n.name, n.epoch)
}

// Check returns nil while the node may act, otherwise ErrReplaced or ErrLapsed.
func (n *Node) Check() error {
	if n == nil {
		return nil
	}
	select {
	case <-n.lost:
		return ErrReplaced
	default:
	}
	if n.LeaseLeft() <= 0 {
		return ErrLapsed
	}
	return nil
}

// LeaseLeft is how long the node may act if it does not reach the database any more. It is zero or negative
// if the node may not act.
func (n *Node) LeaseLeft() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if now.Sub(n.awake) > longestStop {
		n.woken = now
	}
	n.awake = now
	if n.renewed.Before(n.woken) {
		return 0
	}
	return Lease - now.Sub(n.renewed)
}

// stayAwake looks every second whether the process was stopped, until ctx ends.
func (n *Node) stayAwake(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.LeaseLeft()
		}
	}
}

// Seal encrypts a value for the other nodes, see Keys.
func (n *Node) Seal(value []byte, about string) []byte { return n.keys.Seal(value, about) }

// Open decrypts what a node has sealed, see Keys.
func (n *Node) Open(sealed []byte, about string) ([]byte, error) { return n.keys.Open(sealed, about) }

// Lost returns a channel that is closed when the node was replaced. It is nil without a cluster.
func (n *Node) Lost() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.lost
}

// Fence returns an error if the node may no longer act. It is called in the transactions of the node: those that it
// began before it was replaced, or whose lease has ended, store nothing.
func (n *Node) Fence(ctx context.Context, tx database.Tx) error {
	switch lives, err := Lives(ctx, tx, n.ID()); {
	case err != nil:
		return err
	case lives:
		return nil
	}
	if err := n.Check(); err != nil {
		return err
	}
	return ErrLapsed
}

// beat renews the lease until ctx ends or the node was replaced.
func (n *Node) beat(ctx context.Context) {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begun := time.Now()
		there, err := n.renew(ctx, "unixepoch()")
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.logger.WarnContext(ctx, "the lease of this node could not be renewed", slog.Any(telemetry.KeyError, err))
		case !there:
			n.logger.ErrorContext(ctx, "this node ends", slog.Any(telemetry.KeyError, ErrReplaced))
			close(n.lost)
			return
		default:
			n.mu.Lock()
			n.renewed = begun
			n.mu.Unlock()
			n.readMembers(ctx, begun)
		}
	}
}

// renew sets the heartbeat and the load of the node. It returns false if the node was replaced.
func (n *Node) renew(ctx context.Context, heartbeat string) (there bool, _ error) {
	load, _ := n.currentLoad()
	leaving := 0
	if n.leaving.Load() {
		leaving = 1
	}
	return n.db.Change(ctx, "UPDATE node SET heartbeat = "+heartbeat+
		", busy = ?, sandboxes = ?, leaving = ? WHERE name = ? AND epoch = ?",
		load.Busy, load.Sandboxes, leaving, n.name, n.epoch)
}

// Close ends the node, so that another process can take its name at once.
func (n *Node) Close() error {
	if n == nil {
		return nil
	}
	n.link.close()
	n.stop()
	n.beating.Wait()
	_, err := n.renew(context.Background(), "0")
	if errors.Is(err, database.ErrUnavailable) {
		return nil // the lease ends by itself
	}
	return err
}
