package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// clusterAudit is the result of verifying the logs of all nodes.
type clusterAudit struct {
	clusterlog.Report
	Nodes []nodeAudit `json:"nodes"`
}

// nodeAudit is the log of one node.
type nodeAudit struct {
	Node   string        `json:"node"`
	Origin string        `json:"origin"`
	Known  uint64        `json:"known"`            // records that the newest checkpoint in the database covers
	Source string        `json:"source,omitempty"` // of the records: disk, node or copies
	Report *audit.Report `json:"report,omitempty"` // nil: the records cannot be read
	// Missing is a sentence about records that cannot be read; empty: all of them were compared.
	Missing string `json:"missing,omitempty"`
	// Expired is a sentence about records that nobody keeps any more, because all of them are older than audit.keep.
	Expired string `json:"expired,omitempty"`
}

func (c *clusterAudit) sound() bool {
	return len(c.Findings) == 0 && !slices.ContainsFunc(c.Nodes, func(n nodeAudit) bool {
		return n.Missing != "" || n.Report != nil && !n.Report.OK()
	})
}

// verifyCluster verifies the logs of all nodes, and the log of their checkpoints.
func (v *auditVerifyVerb) verifyCluster(ctx context.Context, s *verb.Streams) error {
	if v.Key != "" || v.Head != "" || v.Partial || v.WitnessKey != "" {
		return verb.Usage("--cluster takes the keys from the database of the cluster; combine it only with --witness "+
			"FILE and --json", "airlock audit verify --cluster")
	}
	c, err := v.LoadState(s.Err)
	if err != nil {
		return err
	}
	report, nodes, err := state.ClusterLog(ctx, c, v.Witness)
	if err != nil {
		return setup.Advise(err)
	}
	all := clusterAudit{report, []nodeAudit{}}
	for _, known := range report.Logs {
		n := nodeAudit{Node: known.Node, Origin: known.Origin, Known: known.Size}
		if err := n.verify(ctx, c, known, nodes); err != nil {
			return err
		}
		all.Nodes = append(all.Nodes, n)
	}
	if v.JSON {
		err = verb.PrintLine(s.Out, all)
	} else {
		err = writeCluster(s.Out, all)
	}
	if err == nil && !all.sound() {
		return verb.ExitError(verb.ExitFailed)
	}
	return err
}

// The sources of records.
const (
	fromDisk   = "disk"   // of this node
	fromNode   = "node"   // the node that has the log
	fromCopies = "copies" // in the object store and the database of the cluster
)

// verify compares the log of a node with what the cluster knows of it.
func (n *nodeAudit) verify(ctx context.Context, c *config.Config, known clusterlog.Known,
	nodes []cluster.Member) error {
	err := withLog(ctx, c, known, func(d setup.Directories, source string) error {
		report, err := audit.Verify(d.Audit, &audit.VerifyOptions{Verifier: known.Key, Notes: known.Notes,
			Keys: d.Keys, Copy: source != fromDisk})
		n.Report, n.Source = &report, source
		return err
	})
	var unread *unreadError
	if errors.As(err, &unread) {
		keep := c.Audit.Keep
		if keep > 0 && isGone(known, nodes, unread.cause) && !known.Until.IsZero() && time.Since(known.Until) > keep {
			n.Expired = fmt.Sprintf("records 1 to %d are not kept: all of them were written before %s, and audit.keep "+
				"is %s; the log of the cluster proves its %d checkpoints, and nothing else of it", known.Size,
				known.Until.UTC().Format(time.RFC3339), keep, len(known.Notes))
			return nil
		}
		n.Missing = lost(known, nodes, unread)
		return nil
	}
	return err
}

// unreadError is returned if the log of another node cannot be read.
type unreadError struct {
	cause  error
	copies error // why its copies cannot be read; nil if there are none
}

// Error returns the cause.
func (e *unreadError) Error() string { return e.cause.Error() }

// withLog calls use with the directories of a log: those of this node, or of a copy of the log of another one. The copy
// is made from the node if it answers, otherwise from the copies that the cluster has.
func withLog(ctx context.Context, c *config.Config, known clusterlog.Known,
	use func(d setup.Directories, source string) error) error {
	d, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	switch origin, err := audit.Origin(d.Audit); {
	case err != nil:
		return err
	case origin == known.Origin:
		return use(d, fromDisk)
	}
	dir, err := os.MkdirTemp("", "airlock-audit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	node, copies := filepath.Join(dir, fromNode), filepath.Join(dir, fromCopies)
	if err := errors.Join(os.Mkdir(node, 0o700), os.Mkdir(copies, 0o700)); err != nil {
		return err
	}
	unread := audit.Mirror(node, known.Origin, func(first uint64, offset int64) (audit.Piece, error) {
		if err := ctx.Err(); err != nil {
			return audit.Piece{}, err
		}
		return daemon.LogPiece(listing.PieceQuery{Node: known.Node, First: first, Offset: offset})
	})
	switch {
	case unread == nil:
		return use(setup.Directories{Audit: node}, fromNode)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	switch err := state.MirrorCopies(ctx, c, copies, known.Origin); {
	case errors.Is(err, clusterlog.ErrNoCopies):
		return &unreadError{cause: unread}
	case errors.Is(err, clusterlog.ErrUnreadable):
		return &unreadError{unread, err}
	case err != nil:
		return setup.Advise(err)
	}
	return use(setup.Directories{Audit: copies}, fromCopies)
}

// isGone reports whether no node has a log any more.
func isGone(known clusterlog.Known, nodes []cluster.Member, cause error) bool {
	if errors.Is(cause, join.ErrNone) {
		return false
	}
	i := slices.IndexFunc(nodes, func(n cluster.Member) bool { return n.Name == known.Node })
	return i < 0 || errors.Is(cause, audit.ErrAnotherLog) || nodes[i].State == cluster.Ended ||
		nodes[i].State == cluster.Silent
}

// lost returns a sentence about a log that cannot be read.
func lost(known clusterlog.Known, nodes []cluster.Member, unread *unreadError) string {
	cause := unread.cause
	records := fmt.Sprintf("records 1 to %d are missing: ", known.Size)
	i := slices.IndexFunc(nodes, func(n cluster.Member) bool { return n.Name == known.Node })
	switch {
	case unread.copies != nil:
		return records + unread.copies.Error()
	case errors.Is(cause, join.ErrNone):
		return records + "no daemon of this node is running, so other nodes cannot be asked"
	case i < 0:
		return records + "the cluster has no node of this name"
	case errors.Is(cause, audit.ErrAnotherLog):
		return records + "the node has another log now, so this one was lost or moved away"
	case nodes[i].State == cluster.Ended:
		return records + "the node has ended, and its records are on its disk only"
	case nodes[i].State == cluster.Silent:
		return fmt.Sprintf("%sthe node has not answered since %s, and its records are on its disk only", records,
			nodes[i].Heartbeat.Format("2006-01-02T15:04:05Z"))
	}
	return records + "the node does not answer: " + cause.Error()
}

// writeCluster prints the result for a person.
func writeCluster(w io.Writer, all clusterAudit) error {
	var b strings.Builder
	for _, n := range all.Nodes {
		fmt.Fprintf(&b, "node %s, log %s, %d records known to the cluster\n", verb.Clean(n.Node), verb.Clean(n.Origin),
			n.Known)
		if n.Missing != "" {
			fmt.Fprintf(&b, "  MISSING: %s\n", verb.Clean(n.Missing))
		}
		if n.Expired != "" {
			fmt.Fprintf(&b, "  EXPIRED: %s\n", verb.Clean(n.Expired))
		}
		if n.Source == fromCopies {
			b.WriteString("  the node does not have this log, so its copies were compared\n")
		}
		if n.Report != nil {
			var one strings.Builder
			if err := audit.WriteReport(&one, *n.Report); err != nil {
				return err
			}
			for line := range strings.Lines(one.String()) {
				b.WriteString("  " + line)
			}
		}
	}
	for _, text := range all.Findings {
		fmt.Fprintf(&b, "the log of the cluster: %s\n", verb.Clean(text))
	}
	verdict := "the audit logs of all nodes are sound"
	if !all.sound() {
		verdict = "RECORDS OF THE CLUSTER WERE CHANGED OR ARE MISSING"
	}
	fmt.Fprintf(&b, "%s: %d logs, %d leaves in the log of the cluster\n", verdict, len(all.Nodes), all.Leaves)
	if all.Key != "" {
		fmt.Fprintf(&b, "key %s\n", all.Key)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
