package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/store"
)

// recordsPage is the number of records that are requested at a time.
const recordsPage = 500

// allRecords returns at most n records of all nodes, the oldest first, and the number of the newest record of each node
// that answered. Other nodes are named in missing.
func allRecords(ctx context.Context, q listing.RecordQuery, n int) (all []listing.Record, newest listing.Places,
	missing string, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, "", err
		}
		q.Limit = min(recordsPage, max(n-len(all), 1))
		page, err := daemon.AllRecords(q)
		switch {
		case errors.Is(err, join.ErrNone):
			return nil, nil, "", verb.WithHint(
				errors.New("no daemon of this node is running, so other nodes cannot be asked"), "airlock serve",
				verb.ExitFailed)
		case err != nil:
			return nil, nil, "", err
		case page.Problem != "":
			return nil, nil, "", errors.New(page.Problem)
		}
		if newest == nil { // of the first page
			newest = page.Newest
		}
		all, missing = append(all, page.Records...), page.Missing()
		if q.Before = page.Older; len(q.Before) == 0 || len(all) >= n {
			break
		}
	}
	all = all[:min(n, len(all))]
	slices.Reverse(all)
	return all, newest, missing, nil
}

// warn names the nodes that are missing on stderr.
func warn(s *verb.Streams, missing string) {
	if missing != "" {
		fmt.Fprintln(s.Err, "airlock: "+verb.Clean(missing))
	}
}

// tailCluster prints the newest records of all nodes, the oldest first.
func (v *auditTailVerb) tailCluster(ctx context.Context, s *verb.Streams) error {
	period, err := v.Period()
	if err != nil {
		return err
	}
	lines := v.Lines
	if !period.IsZero() {
		lines = math.MaxInt
	}
	q := listing.RecordQuery{Period: period}
	records, newest, missing, err := allRecords(ctx, q, lines)
	if err != nil {
		return err
	}
	warn(s, missing)
	if v.Follow {
		if err := v.write(s.Out, records); err != nil {
			return err
		}
		return v.follow(ctx, s, q, newest, missing)
	}
	return verb.Paged(s, func(w io.Writer) error { return v.write(w, records) })
}

// write prints records with their nodes.
func (v *auditTailVerb) write(w io.Writer, records []listing.Record) (err error) {
	for _, r := range records {
		if v.JSON {
			err = verb.PrintLine(w, r)
		} else if _, err = fmt.Fprintf(w, "%-10s ", verb.Clean(r.Node)); err == nil {
			err = audit.WriteLine(w, r.Record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow prints each second the records that all nodes have added after newest, until ctx is done. A node that did not
// answer at first is followed from where its log ends when it answers.
func (v *auditTailVerb) follow(ctx context.Context, s *verb.Streams, q listing.RecordQuery, newest listing.Places,
	missing string) error {
	silent := missing != ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		q.After = newest
		records, added, without, err := allRecords(ctx, q, math.MaxInt)
		if err != nil {
			return err
		}
		if without != missing {
			warn(s, without)
			missing = without
		}
		for node, seq := range added {
			if _, known := newest[node]; !known && silent {
				records = slices.DeleteFunc(records, func(r listing.Record) bool { return r.Node == node })
			}
			newest[node] = seq
		}
		silent = silent && without != ""
		if err := v.write(s.Out, records); err != nil {
			return err
		}
	}
}

// showCluster prints the records of a run at each node that has some: a suspended run may have moved.
func (v *auditShowVerb) showCluster(ctx context.Context, s *verb.Streams) error {
	if v.Arguments {
		return verb.Usage("--arguments needs the key of the node that made the calls: use it there, without --cluster",
			"airlock audit show RUN --arguments")
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	all, _, missing, err := allRecords(ctx, listing.RecordQuery{Run: v.RunID, Period: period}, math.MaxInt)
	if err != nil {
		return err
	}
	warn(s, missing)
	if len(all) == 0 {
		return verb.WithHint(fmt.Errorf("showing %q: %w", v.RunID, audit.ErrNoRun),
			"with --cluster, RUN is a whole ID: airlock runs list", verb.ExitFailed)
	}
	records := map[string][]audit.Record{}
	for _, r := range all {
		records[r.Node] = append(records[r.Node], r.Record)
	}
	trees := map[string]*audit.RunTree{}
	for node, of := range records {
		trees[node] = audit.TreesOf(of)[v.RunID]
		runlog.Redact(trees[node], credentials.Printed())
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"nodes": trees})
	}
	return verb.Paged(s, func(w io.Writer) error {
		for _, r := range all { // in the order in which the nodes had the run
			if trees[r.Node] == nil {
				continue
			}
			if _, err := fmt.Fprintf(w, "node %s\n", verb.Clean(r.Node)); err != nil {
				return err
			}
			if err := audit.WriteTree(w, trees[r.Node]); err != nil {
				return err
			}
			delete(trees, r.Node)
		}
		return nil
	})
}

// exportCluster writes a file for the log of each node into the directory --to.
func (v *auditExportVerb) exportCluster(ctx context.Context, s *verb.Streams, opts audit.ExportOptions) error {
	if v.To == "" || v.Follow || v.Cursor != "" || v.From > 0 {
		return verb.Usage("--cluster writes a file for each node and needs a directory; --follow, --cursor and --from "+
			"are for the log of one node", "airlock audit export --cluster --to logs")
	}
	c, err := v.LoadState(s.Err)
	if err != nil {
		return err
	}
	report, nodes, err := state.ClusterLog(ctx, c, "")
	if err != nil {
		return setup.Advise(err)
	}
	if err := os.MkdirAll(v.To, 0o700); err != nil {
		return err
	}
	incomplete := false
	for _, known := range report.Logs {
		name := filepath.Join(v.To, filepath.Base(known.Node)+"-"+filepath.Base(known.Origin)+"."+string(v.Format))
		err := withLog(ctx, c, known, func(d setup.Directories, _ string) error {
			return store.Create(name, 0o600, func(f *os.File) error {
				return audit.Export(f, d.Audit, v.Format, &opts)
			})
		})
		var unread *unreadError
		switch {
		case errors.As(err, &unread):
			incomplete = true
			fmt.Fprintf(s.Err, "airlock: node %s: %s\n", verb.Clean(known.Node),
				verb.Clean(lost(known, nodes, unread)))
		case errors.Is(err, fs.ErrExist):
			return verb.Usage(fmt.Sprintf("%q exists already", name), "--to takes a new directory")
		case err != nil:
			return err
		default:
			fmt.Fprintln(s.Out, name)
		}
	}
	return verb.FailIf(incomplete)
}
