package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

const (
	// copiesTime is how long a request waits for copies of records.
	copiesTime = 15 * time.Second
	// maxOwn is the most records of a lost run that are read from the log of this process.
	maxOwn = 10_000
)

// Copied is a node whose records are from copies.
type Copied struct {
	Node  string
	Until time.Time // a time after which no copied record was written; zero: the node has no copies
}

// String returns a sentence that says what may be missing.
func (c Copied) String() string {
	const cause = "Node %s does not answer or has lost its log, "
	if c.Until.IsZero() {
		return fmt.Sprintf(cause+"and there are no copies of its records.", c.Node)
	}
	return fmt.Sprintf(cause+"so these are copies of its records: those that it wrote after %s UTC may be missing.",
		c.Node, c.Until.UTC().Format(time.DateTime))
}

// copies returns what the copies of the logs of nodes have of a run.
func (l *Lists) copies(ctx context.Context, who caller.Caller, run string, nodes []string) ([]clusterlog.RunCopy,
	error) {
	ctx, cancel := context.WithTimeout(ctx, copiesTime)
	defer cancel()
	turn, err := l.reading.Wait(ctx, who.Account())
	if err != nil {
		return nil, err
	}
	defer turn.Release()
	return l.opts.Attached.Records(ctx, run, nodes)
}

// addCopies adds the copied records of a run to the parts of the nodes that have answered: those of its nodes that do
// not answer, have ended, or have no such records.
func (l *Lists) addCopies(ctx context.Context, who caller.Caller, q RecordQuery, parts []part[ownRecords],
	unanswered []string) (_ []part[ownRecords], _ []string, copied []Copied) {
	nodes, _ := l.opts.Node.Had(ctx, q.Run)
	nodes = slices.DeleteFunc(nodes, func(node string) bool {
		return slices.ContainsFunc(parts, func(p part[ownRecords]) bool {
			return p.node == node && (len(p.list.Records) > 0 || p.list.Problem != "")
		})
	})
	if len(nodes) == 0 {
		return parts, unanswered, nil
	}
	copies, err := l.copies(ctx, who, q.Run, nodes)
	if err != nil {
		return append(parts, part[ownRecords]{nodes[0], ownRecords{Problem: err.Error()}}), unanswered, nil
	}
	for _, one := range copies {
		var list ownRecords
		for _, r := range slices.Backward(one.Records) {
			if before := q.Before[one.Node]; q.matches(r) && (before == 0 || r.Seq < before) {
				list.Records = append(list.Records, r)
			}
		}
		of := func(p part[ownRecords]) bool { return p.node == one.Node }
		if answered := slices.ContainsFunc(parts, of); len(one.Records) == 0 || answered && len(list.Records) == 0 {
			continue
		}
		parts = append(slices.DeleteFunc(parts, of), part[ownRecords]{one.Node, list})
		unanswered = slices.DeleteFunc(unanswered, func(node string) bool { return node == one.Node })
		copied = append(copied, Copied{one.Node, one.Until})
	}
	return parts, unanswered, copied
}

// Lost is a run whose node does not answer or has lost its log, from the copies of its records.
type Lost struct {
	Run  runlog.Run
	Tree *audit.RunTree
	Copied
}

// ErrLost is returned for a run of a node that does not answer, if there are no copies of its records that the caller
// may see.
var ErrLost = errors.New("the node of the run does not answer")

// Lost returns a run whose node does not answer or has lost its log, or nil if the ID is not that of such a node. Its
// recording and files are on this machine afterwards.
func (l *Lists) Lost(ctx context.Context, who caller.Caller, run string) (*Lost, error) {
	nodes, isLost := l.opts.Node.Had(ctx, run)
	if !isLost {
		return nil, nil
	}
	lost := &Lost{Copied: Copied{Node: nodes[len(nodes)-1]}}
	isOwn := lost.Node == l.opts.Node.Name()
	records := l.scan(RecordQuery{Run: run, Limit: maxOwn}).Records
	if isOwn && len(records) > 0 {
		return nil, nil
	}
	slices.Reverse(records)
	copies, err := l.copies(ctx, who, run, nodes)
	if err != nil {
		return nil, err
	}
	for _, one := range copies {
		records, lost.Until = append(records, one.Records...), one.Until
	}
	if lost.Tree = l.opts.Log.TreeOf(run, inOrder(records)); lost.Tree != nil {
		lost.Run = runlog.Summarize(lost.Tree.Summary())
	}
	switch {
	case lost.Tree != nil && maySee(who, lost.Run.Owner):
		return lost, l.fetch(ctx, run, lost.Run.Owner)
	case isOwn:
		return nil, nil
	}
	return nil, ErrLost
}

// inOrder returns records of several logs by their times, each once. Their numbers are those of this order.
func inOrder(records []audit.Record) (all []audit.Record) {
	known := map[string]bool{}
	for _, r := range records {
		if !known[r.Hash] {
			known[r.Hash] = true
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b audit.Record) int { return cmp.Compare(a.Time, b.Time) })
	for i := range all {
		all[i].Seq = uint64(i + 1)
	}
	return all
}

// fetch makes the recording and the files of a lost run those of this machine. It returns an error if they are not of
// the owner that the records have: only processes with the key of the cluster can write the copies of recordings and
// files, and the records are not compared with checkpoints here.
func (l *Lists) fetch(ctx context.Context, run string, owner caller.Owner) error {
	if _, err := l.opts.Log.Recording(run); err != nil { // it was not fetched, or is not kept
		l.opts.Attached.Fetch(ctx, run)
	}
	return l.opts.Log.CheckOwner(run, owner)
}
