package clusterlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Report is the result of Verify. The cluster log is sound if Findings is empty.
type Report struct {
	Origin   string   `json:"origin,omitempty"` // names the cluster log in its checkpoints
	Key      string   `json:"key,omitempty"`    // its public key, as an HTTP witness takes it
	Leaves   uint64   `json:"leaves"`
	Findings []string `json:"findings"`
	Logs     []Known  `json:"-"` // of the nodes, by name
}

// Known is what the cluster knows of the log of a node.
type Known struct {
	Node   string // the name of the node that had the log last
	Origin string
	Key    string   // the public key of the log
	Size   uint64   // records that the newest checkpoint covers
	Notes  [][]byte // checkpoints, from the oldest to the newest
	// Until is a time after which no record was written that the newest checkpoint covers, by the clock of the database
	// and the leaves of the cluster log. It is zero if the log has no leaf.
	Until time.Time
}

// maxFindings is the most findings of a report.
const maxFindings = 100

func (r *Report) find(format string, values ...any) {
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, fmt.Sprintf(format, values...))
	}
}

// Verify reads the cluster log and reports each leaf that was changed, removed or added. file has checkpoints of it
// that a witness has; it may be empty. key is the key of the cluster.
func Verify(ctx context.Context, db *database.DB, key Key, file string) (Report, error) {
	var seen [][]byte
	if file != "" {
		var err error
		if seen, err = witness.Stored(file, originPrefix); err != nil {
			return Report{}, err
		}
	}
	var v *verifier
	err := db.View(ctx, func(tx database.Tx) error {
		v = &verifier{report: Report{Findings: []string{}}, logs: map[string]*Known{}}
		return v.read(ctx, tx, key, seen)
	})
	if err != nil {
		return Report{}, fmt.Errorf("reading the log of the cluster: %w", err)
	}
	return v.report, nil
}

type verifier struct {
	report Report
	logs   map[string]*Known // by origin
	hashes audit.MemoryHashes
	roots  map[uint64]tlog.Hash // that were signed, by size
}

func (v *verifier) read(ctx context.Context, tx database.Tx, key Key, seen [][]byte) error {
	var sealed []byte
	var signed string
	var size uint64
	err := tx.QueryRowContext(ctx, "SELECT origin, sealed, size, note FROM audit_tree").Scan(&v.report.Origin, &sealed,
		&size, &signed)
	if errors.Is(err, sql.ErrNoRows) {
		if len(seen) > 0 {
			v.report.find("the witness has checkpoints of the log of a cluster, and the database has none: it is " +
				"another database, or it was emptied")
		}
		return nil
	}
	if err != nil {
		return err
	}
	if _, v.report.Key, err = openSigner(sealed, key); err != nil {
		return err
	}
	v.roots = map[uint64]tlog.Hash{}
	newest := v.checkpoint([]byte(signed), "the newest checkpoint")
	for _, one := range seen {
		newest = max(newest, v.checkpoint(one, "a checkpoint that the witness has"))
	}
	if err := v.logsOf(ctx, tx); err != nil {
		return err
	}
	if err := v.leaves(ctx, tx); err != nil {
		return err
	}
	if v.report.Leaves != size {
		v.report.find("it has %d leaves, and %d were counted", v.report.Leaves, size)
	}
	if newest > v.report.Leaves {
		v.report.find("the leaves %d to %d are missing: they were signed", v.report.Leaves+1, newest)
	}
	v.compareNewest()
	return nil
}

// checkpoint keeps the root of a checkpoint of the cluster log, and returns its size.
func (v *verifier) checkpoint(signed []byte, name string) uint64 {
	verifier, err := note.NewVerifier(v.report.Key)
	if err != nil {
		v.report.find("its public key is damaged")
		return 0
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	var h head
	var root string
	if err == nil {
		if _, err = fmt.Sscanf(n.Text, "%s\n%d\n%s\n", &h.origin, &h.size, &root); err == nil {
			h.root, err = tlog.ParseHash(root)
		}
	}
	switch {
	case err != nil || h.text() != n.Text || h.origin != v.report.Origin:
		v.report.find("%s is damaged, or of the log of another cluster", name)
		return 0
	case v.roots[h.size] != tlog.Hash{} && v.roots[h.size] != h.root:
		v.report.find("two checkpoints of %d leaves differ", h.size)
	}
	v.roots[h.size] = h.root
	return h.size
}

// logsOf reads the logs of the nodes.
func (v *verifier) logsOf(ctx context.Context, tx database.Tx) error {
	var k Known
	var newest string
	err := database.ScanRows(ctx, tx, "SELECT origin, node, key, size, note FROM audit_log ORDER BY node, origin", nil,
		[]any{&k.Origin, &k.Node, &k.Key, &k.Size, &newest}, func() error {
			k.Notes = [][]byte{[]byte(newest)} // moved to the end when the leaves were read
			v.report.Logs = append(v.report.Logs, k)
			return nil
		})
	for i := range v.report.Logs {
		v.logs[v.report.Logs[i].Origin] = &v.report.Logs[i]
	}
	return err
}

// leaves reads the leaves, computes their tree and compares it with the signed roots.
func (v *verifier) leaves(ctx context.Context, tx database.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT number, leaf FROM audit_leaf ORDER BY number")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number uint64
		var text string
		if err := rows.Scan(&number, &text); err != nil {
			return err
		}
		if number != v.report.Leaves {
			v.report.find("leaf %d is missing", v.report.Leaves+1)
			return nil
		}
		stored, err := tlog.StoredHashes(int64(number), []byte(text), v.hashes)
		if err != nil {
			return err
		}
		v.hashes = append(v.hashes, stored...)
		v.report.Leaves++
		if root, ok := v.roots[v.report.Leaves]; ok {
			if got, err := tlog.TreeHash(int64(v.report.Leaves), v.hashes); err != nil || got != root {
				v.report.find("the leaves up to %d are not those that were signed", v.report.Leaves)
			}
		}
		v.leaf(text)
	}
	return rows.Err()
}

// leaf compares a leaf with the log that it is about.
func (v *verifier) leaf(text string) {
	parts := strings.SplitN(text, "\n", 5) // the time, the node, its key, and the note, which begins with the origin
	var known *Known
	number, isNode := strings.CutPrefix(parts[0], leafTop)
	added, err := strconv.ParseInt(number, 10, 64)
	if len(parts) == 5 && isNode && err == nil {
		known = v.logs[parts[3]]
	}
	if known == nil || known.Key != parts[2] {
		v.report.find("leaf %d is of no log of a node, or of one with another key (%s)", v.report.Leaves,
			visible.Clip(text, 80))
		return
	}
	known.Until = time.Unix(added, 0).Add(leafInterval) // the next checkpoint after that has a leaf
	last := len(known.Notes) - 1
	known.Notes = append(known.Notes[:last], []byte(parts[3]+"\n"+parts[4]), known.Notes[last])
}

// compareNewest reports logs whose leaves go further than their newest checkpoint.
func (v *verifier) compareNewest() {
	for i := range v.report.Logs {
		k := &v.report.Logs[i]
		if last := len(k.Notes) - 1; last == 0 {
			v.report.find("the log %s of node %s has no leaf", k.Origin, k.Node)
		} else if string(k.Notes[last]) == string(k.Notes[last-1]) {
			k.Notes = k.Notes[:last]
		}
	}
}
