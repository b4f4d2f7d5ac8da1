package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The lists of join.PurposeList.
const (
	listRuns      = "runs"
	listServers   = "servers"
	listQuestions = "questions"
	listLog       = "log"
	listRecords   = "records"
)

// Servers are the servers of all nodes.
type Servers struct {
	Servers    []listing.Server
	Unanswered []string // nodes whose servers are missing
}

// Questions are the open questions of the other nodes of a cluster.
type Questions struct {
	Node       string // the name of this node; empty without a cluster
	Questions  []approval.Posted
	Unanswered []string // nodes whose questions may be missing
}

// list returns a list of all nodes as the user who runs Airlock sees it.
func (d *Daemon) list(ctx context.Context, h join.Hello) (any, error) {
	who := owner()
	who.Scopes = append(who.Scopes, caller.ScopeAllRuns) // commands show what everyone has
	switch h.List {
	case listRuns:
		var q listing.RunQuery
		if err := strictjson.UnmarshalOpen(h.Query, &q); err != nil {
			return nil, err
		}
		return d.lists.Runs(ctx, who, q)
	case listServers:
		servers, unanswered, err := d.lists.Servers(ctx, who)
		return Servers{servers, unanswered}, err
	case listRecords:
		var q listing.RecordQuery
		if err := strictjson.UnmarshalOpen(h.Query, &q); err != nil {
			return nil, err
		}
		return d.lists.Records(ctx, who, q)
	case listLog:
		var q listing.PieceQuery
		if err := strictjson.UnmarshalOpen(h.Query, &q); err != nil {
			return nil, err
		}
		return d.lists.Piece(ctx, who, q)
	case listQuestions:
		return Questions{d.opts.System.Node().Name(), d.opts.System.Approvals().Elsewhere(),
			d.opts.System.Node().Silent()}, nil
	default:
		return nil, fmt.Errorf("the list %q is unknown", h.List)
	}
}

// askList requests a list of the running daemon.
func askList(name string, query, into any) error {
	h := join.Hello{Purpose: join.PurposeList, List: name}
	var err error
	if query != nil {
		if h.Query, err = json.Marshal(query); err != nil {
			return err
		}
	}
	text, err := rest(h)
	if err == nil {
		err = strictjson.UnmarshalOpen(text, into)
	}
	return err
}

// AllRuns returns the runs of all nodes of the cluster that the running daemon is a node of.
func AllRuns(q listing.RunQuery) (runs listing.Runs, err error) {
	err = askList(listRuns, q, &runs)
	return runs, err
}

// AllServers returns the servers of all nodes of the cluster that the running daemon is a node of.
func AllServers() (servers Servers, err error) {
	err = askList(listServers, nil, &servers)
	return servers, err
}

// AllRecords returns records of the audit logs of all nodes of the cluster that the running daemon is a node of.
func AllRecords(q listing.RecordQuery) (records listing.Records, err error) {
	err = askList(listRecords, q, &records)
	return records, err
}

// LogPiece returns a piece of the audit log of a node of the cluster that the running daemon is a node of.
func LogPiece(q listing.PieceQuery) (p audit.Piece, err error) {
	err = askList(listLog, q, &p)
	return p, err
}

// OtherQuestions returns the open questions of the other nodes of the cluster that the running daemon is a node of.
// Without a daemon, there are none.
func OtherQuestions() (q Questions, err error) {
	if err = askList(listQuestions, nil, &q); errors.Is(err, join.ErrNone) {
		err = nil
	}
	return q, err
}
