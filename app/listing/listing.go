// Package listing lists runs, servers and records of the audit log: those of this process, and in a cluster those of
// all nodes.
package listing

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Options are the options of New. Runs, Log and Audit are required.
type Options struct {
	Node  *cluster.Node // nil: there is one process
	Runs  *runs.Registry
	Log   *runlog.Log
	Audit string // the directory of the audit log
	// Attached are the files that runs of this process have attached, with the copies of other nodes. Files and, in a
	// cluster, Records and Lost need it.
	Attached copies.RunFiles
	// Servers returns the states of the servers that a caller sees; nil means no servers.
	Servers func(who caller.Caller) []upstreams.ServerState
	Clean   func(text string) string // removes secrets; nil leaves texts as they are
	Now     func() time.Time         // nil means time.Now
}

// Lists makes the lists. It is safe for concurrent use.
type Lists struct {
	opts    Options
	titles  *titles
	reading *quota.Limiter // of copies of logs
}

// New returns the lists of a process.
func New(opts Options) *Lists {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Clean == nil {
		opts.Clean = func(text string) string { return text }
	}
	if opts.Servers == nil {
		opts.Servers = func(caller.Caller) []upstreams.ServerState { return nil }
	}
	return &Lists{opts, newTitles(opts.Clean), quota.New(quota.For(quota.Scans))}
}

// Registry returns the runs that this process has.
func (l *Lists) Registry() *runs.Registry { return l.opts.Runs }

// Log returns the runs of the audit log of this process.
func (l *Lists) Log() *runlog.Log { return l.opts.Log }

// Title returns the title of a run that is over, or "" if it has none.
func (l *Lists) Title(run string) string { return l.titles.of(run, l.opts.Log.Recordings()) }

// TitleOfCode returns the title of a run in progress, or "" if its code has none.
func (l *Lists) TitleOfCode(code string) string { return l.titles.ofCode(code) }

// The kinds of questions between nodes.
const (
	kindRuns    = "runs"
	kindServers = "servers"
	kindRecords = "records"
	kindLog     = "log"
	kindFiles   = "files"
)

// question is what one node asks another. The node that asks has authenticated the caller, and the other one decides
// which entries the caller sees. Questions change nothing.
type question struct {
	Kind   string          `json:"kind"`
	Caller caller.Caller   `json:"caller"`
	Query  json.RawMessage `json:"query"`
}

// Answer answers a question of another node.
func (l *Lists) Answer(ctx context.Context, text []byte) ([]byte, error) {
	var q question
	if err := strictjson.UnmarshalOpen(text, &q); err != nil {
		return nil, err
	}
	var list any
	var err error
	switch q.Kind {
	case kindRuns:
		list, err = answered(q, l.ownRuns)
	case kindServers:
		list, err = answered(q, l.ownServers)
	case kindRecords:
		list, err = answered(q, l.ownRecords)
	case kindLog:
		list, err = answered(q, l.ownPiece)
	case kindFiles:
		list, err = answered(q, l.ownFiles)
	default:
		err = fmt.Errorf("the kind %q is unknown", q.Kind)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(list)
}

func answered[Q, L any](q question, own func(caller.Caller, Q) (L, error)) (list L, err error) {
	var query Q
	if err := strictjson.UnmarshalOpen(q.Query, &query); err != nil {
		return list, err
	}
	return own(q.Caller, query)
}

// part is the list of one node.
type part[L any] struct {
	node string
	list L
}

// gather returns the lists of this process and of the other nodes. unanswered are the nodes that do not answer.
func gather[Q, L any](ctx context.Context, l *Lists, kind string, who caller.Caller, query Q,
	own func(caller.Caller, Q) (L, error)) (parts []part[L], unanswered []string, err error) {
	of, err := json.Marshal(query)
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(question{kind, who, of})
	if err != nil {
		return nil, nil, err
	}
	answers := make(chan []cluster.Answer, 1)
	go func() { answers <- l.opts.Node.Ask(ctx, text) }() // it ends with ctx, or after a while
	list, err := own(who, query)
	others := <-answers
	if err != nil {
		return nil, nil, err
	}
	parts = []part[L]{{l.opts.Node.Name(), list}}
	for _, a := range others {
		var other L
		if a.Err != nil || strictjson.UnmarshalOpen(a.Body, &other) != nil {
			unanswered = append(unanswered, a.Node)
			continue
		}
		parts = append(parts, part[L]{a.Node, other})
	}
	return parts, unanswered, nil
}

// Missing returns a sentence about nodes that do not answer, or "".
func Missing(unanswered []string) string {
	switch n := len(unanswered); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Node %s does not answer, so its part of this list is missing.", unanswered[0])
	default:
		names := unanswered[0]
		for _, name := range unanswered[1 : n-1] {
			names += ", " + name
		}
		return fmt.Sprintf("Nodes %s and %s do not answer, so their parts of this list are missing.", names,
			unanswered[n-1])
	}
}
