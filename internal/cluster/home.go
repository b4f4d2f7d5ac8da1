package cluster

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// SchemaHomes makes the table of sessions that have files.
const SchemaHomes = `
CREATE TABLE session_home (
	session TEXT PRIMARY KEY,
	node    TEXT NOT NULL -- the ID of the node that has the files
) STRICT;`

// ErrElsewhere is returned by Keep if another node has the files of a session.
var ErrElsewhere = errors.New("another node has the files of the session")

// homeTime is how long a request waits for the database to find the home of its session.
const homeTime = time.Second

// stays is the condition in SQL for a node that has not ended, is not ending and has renewed its lease lately.
const stays = "node.leaving = 0 AND node.heartbeat > unixepoch() - ?"

// Keep makes this node the home of a session: it has the files of the session, so the runs of its host begin here. It
// returns ErrElsewhere if a node that stays is the home already.
func (n *Node) Keep(ctx context.Context, session string) error {
	if n == nil {
		return nil
	}
	taken, err := n.db.Fenced(n.Fence).Change(ctx, `INSERT INTO session_home VALUES (?, ?) ON CONFLICT (session) DO UPDATE
		SET node = excluded.node WHERE session_home.node = excluded.node OR session_home.node NOT IN
		(SELECT id FROM node WHERE `+stays+`)`, session, n.ID(), seconds(silentAfter))
	if err == nil && !taken {
		err = ErrElsewhere
	}
	return err
}

// Release notes that this node has no files of a session any more.
func (n *Node) Release(ctx context.Context, session string) error {
	if n == nil {
		return nil
	}
	return n.db.Exec(ctx, "DELETE FROM session_home WHERE session = ? AND node = ?", session, n.ID())
}

// home returns the node that is the home of a session, if it stays. Of this node, only the name is set.
func (n *Node) home(ctx context.Context, session string) (member, bool) {
	if session == "" {
		return member{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, homeTime)
	defer cancel()
	var name string
	err := n.db.QueryRow(ctx, "SELECT name FROM session_home JOIN node ON node.id = session_home.node "+
		"WHERE session = ? AND "+stays, []any{session, seconds(silentAfter)}, &name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return member{}, false
	case err != nil: // the run begins without files rather than not at all
		n.logger.WarnContext(ctx, "the node with the files of a session could not be found",
			slog.Any(telemetry.KeyError, err))
		return member{}, false
	case name == n.name:
		return member{name: name}, true
	}
	to, known := n.members.named(name)
	if !known {
		n.readMembers(ctx, time.Now().Add(-rereadAfter))
		to, _ = n.members.named(name)
	}
	return to, to.address != ""
}
