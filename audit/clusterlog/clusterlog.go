// Package clusterlog keeps one log of the audit logs of all nodes of a cluster, in the cluster's database. Its leaves
// are checkpoints of the nodes' logs. It detects a log that was changed, replaced by an older copy, or lost with its
// disk.
//
// The database is a witness of each log: it accepts a checkpoint only if the log has grown since the last one. The
// checkpoint of the cluster log goes to the witness outside the cluster, so that one signature there covers all nodes.
package clusterlog

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"filippo.io/age"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Schema makes the tables of the log.
const Schema = `
CREATE TABLE audit_log (
	origin TEXT PRIMARY KEY, -- names the log of a node in its checkpoints
	node   TEXT NOT NULL,    -- the name of the node that has the log
	key    TEXT NOT NULL,    -- its public key, as of note.NewVerifier
	size   INTEGER NOT NULL, -- records that the newest checkpoint covers
	root   TEXT NOT NULL,    -- of the tree over them
	note   TEXT NOT NULL,    -- the newest checkpoint
	leaf_at INTEGER NOT NULL -- when the newest leaf was added, in seconds since 1970
) STRICT;
CREATE TABLE audit_leaf (
	number INTEGER PRIMARY KEY, -- from 0
	leaf   TEXT NOT NULL,
	hashes BLOB NOT NULL        -- those that the tree keeps for it, as of tlog.StoredHashes
) STRICT;
CREATE TABLE audit_tree (
	origin TEXT PRIMARY KEY, -- names the cluster log
	sealed BLOB NOT NULL,    -- its signing key, encrypted with the key of the cluster
	size   INTEGER NOT NULL,
	note   TEXT NOT NULL     -- the newest checkpoint; empty: there are no leaves
) STRICT;`

const (
	originPrefix = "airlock-cluster/"
	// leafInterval is how often a log adds a leaf. Newer checkpoints only replace the one in audit_log.
	leafInterval = 5 * time.Minute
)

// Key is the key of the cluster.
type Key interface {
	age.Identity
	Recipient() *age.X25519Recipient
}

// Options are the options of New. Node and Key are required.
type Options struct {
	Node    string // the name of this node
	Key     Key
	Witness witness.Witness // gets the checkpoints of the cluster log; nil: nobody
	Copies  *Copies         // nil: the records are on the disk of the node only
	Logger  *slog.Logger    // nil means slog.Default
}

// Log adds the checkpoints of the log of one node. It is a witness.Witness.
type Log struct {
	db      *database.DB
	opts    Options
	tail    tail     // used by Submit
	shipper *shipper // nil without copies
}

var _ witness.Witness = (*Log)(nil)

// New returns the cluster log in a database. The caller must close it before the database.
func New(db *database.DB, opts Options) *Log {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	l := &Log{db: db, opts: opts}
	if opts.Copies != nil {
		l.shipper = newShipper(db, opts)
	}
	return l
}

// Close waits for the copies of full files that are being made. It is called when no checkpoint is submitted any more.
func (l *Log) Close() error {
	if l.shipper != nil {
		l.shipper.close()
	}
	return nil
}

// Submit adds a checkpoint of the log of this node. It returns witness.ErrConflict if the database has a checkpoint
// that the log does not continue.
func (l *Log) Submit(ctx context.Context, c witness.Checkpoint) ([]byte, error) {
	verifier, err := note.NewVerifier(c.Key)
	if err == nil {
		_, err = note.Open(c.Note, note.VerifierList(verifier))
	}
	if err != nil {
		return nil, fmt.Errorf("adding a checkpoint to the log of the cluster: %w", err)
	}
	var added *head
	var more []unsent
	if l.opts.Copies != nil && l.opts.Copies.Tail {
		more, err = l.unsent(ctx, verifier.Name(), c.Size)
	}
	if err == nil {
		err = l.db.Update(ctx, func(tx database.Tx) (err error) {
			if added, err = l.submit(ctx, tx, verifier.Name(), c); err != nil {
				return err
			}
			return l.store(ctx, tx, verifier.Name(), more)
		})
	}
	if err != nil {
		l.tail = tail{} // the database may have stored the bytes without an answer
		return nil, fmt.Errorf("adding a checkpoint to the log of the cluster: %w", err)
	}
	l.tail.advance(more)
	if added != nil && l.opts.Witness != nil {
		if err := l.pass(ctx, added); err != nil {
			l.opts.Logger.WarnContext(ctx, "the witness did not take a checkpoint of the log of the cluster",
				slog.Any(telemetry.KeyError, err))
		}
	}
	if l.shipper != nil {
		if err := l.shipper.look(verifier.Name()); err != nil {
			return nil, err
		}
	}
	return c.Note, nil
}

// submit returns the new checkpoint of the cluster log, or nil if no leaf was added.
func (l *Log) submit(ctx context.Context, tx database.Tx, origin string, c witness.Checkpoint) (*head, error) {
	var known struct {
		key, root string
		size      uint64
		recent    bool // a leaf was added less than leafInterval ago
	}
	err := tx.QueryRowContext(ctx,
		"SELECT key, size, root, leaf_at > unixepoch() - ? FROM audit_log WHERE origin = ?",
		int64(leafInterval/time.Second), origin).Scan(&known.key, &known.size, &known.root, &known.recent)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if _, err := tx.ExecContext(ctx, "INSERT INTO audit_log VALUES (?, ?, ?, ?, ?, ?, unixepoch())", origin,
			l.opts.Node, c.Key, c.Size, c.Root.String(), string(c.Note)); err != nil {
			return nil, err
		}
		return l.add(ctx, tx, c)
	case err != nil:
		return nil, err
	case known.key != c.Key:
		return nil, fmt.Errorf("%w: the log %s was signed with another key", witness.ErrConflict, origin)
	case known.size > c.Size:
		return nil, fmt.Errorf("%w: the database of the cluster has a checkpoint of record %d, and the newest here is "+
			"of %d", witness.ErrConflict, known.size, c.Size)
	case known.size == c.Size && known.root == c.Root.String():
		return nil, nil
	}
	if err := extends(c, known.size, known.root); err != nil {
		return nil, err
	}
	leafAt := "leaf_at"
	if !known.recent {
		leafAt = "unixepoch()"
	}
	if _, err := tx.ExecContext(ctx, "UPDATE audit_log SET node = ?, size = ?, root = ?, note = ?, leaf_at = "+leafAt+
		" WHERE origin = ?", l.opts.Node, c.Size, c.Root.String(), string(c.Note), origin); err != nil || known.recent {
		return nil, err
	}
	return l.add(ctx, tx, c)
}

// extends returns an error if the log of a checkpoint does not continue an earlier one.
func extends(c witness.Checkpoint, size uint64, root string) error {
	old, err := tlog.ParseHash(root)
	if err != nil {
		return err
	}
	var proof []tlog.Hash
	if size < c.Size {
		if proof, err = c.Prove(size); err != nil {
			return err
		}
	}
	if size == c.Size || tlog.CheckTree(proof, int64(c.Size), c.Root, int64(size), old) != nil {
		return fmt.Errorf("%w: the database of the cluster has another root for %d records", witness.ErrConflict, size)
	}
	return nil
}

// leafTop begins the first line of a leaf. The time of the database follows, in seconds since 1970.
const leafTop = "airlock-node "

// leaf returns the text of a leaf: when it was added, whose log it is about, and the checkpoint.
func leaf(now int64, node, key string, signed []byte) string {
	return fmt.Sprintf("%s%d\n%s\n%s\n%s", leafTop, now, node, key, signed)
}

// head is a checkpoint of the cluster log.
type head struct {
	origin string
	size   uint64
	root   tlog.Hash
	key    string // the public key
	signed []byte
}

// text returns the text of a C2SP tlog-checkpoint.
func (h *head) text() string { return fmt.Sprintf("%s\n%d\n%s\n", h.origin, h.size, h.root) }

// add appends a leaf and signs the log with it.
func (l *Log) add(ctx context.Context, tx database.Tx, c witness.Checkpoint) (*head, error) {
	tree, signer, key, err := l.tree(ctx, tx)
	if err != nil {
		return nil, err
	}
	var now int64
	if err := tx.QueryRowContext(ctx, "SELECT unixepoch()").Scan(&now); err != nil {
		return nil, err
	}
	text := leaf(now, l.opts.Node, c.Key, c.Note)
	n := int64(tree.size)
	reader := stored(ctx, tx)
	hashes, err := tlog.StoredHashes(n, []byte(text), reader)
	if err != nil {
		return nil, err
	}
	var blob []byte
	for _, h := range hashes {
		blob = append(blob, h[:]...)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO audit_leaf VALUES (?, ?, ?)", n, text, blob); err != nil {
		return nil, err
	}
	root, err := tlog.TreeHash(n+1, reader)
	if err != nil {
		return nil, err
	}
	next := &head{origin: tree.origin, size: tree.size + 1, root: root, key: key}
	if next.signed, err = note.Sign(&note.Note{Text: next.text()}, signer); err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE audit_tree SET size = ?, note = ? WHERE origin = ?", next.size,
		string(next.signed), next.origin)
	return next, err
}

// tree returns the newest checkpoint and the signer, which it makes for the first leaf.
func (l *Log) tree(ctx context.Context, tx database.Tx) (h head, signer note.Signer, key string, err error) {
	var sealed []byte
	err = tx.QueryRowContext(ctx, "SELECT origin, sealed, size FROM audit_tree").Scan(&h.origin, &sealed, &h.size)
	if errors.Is(err, sql.ErrNoRows) {
		random := make([]byte, 16)
		rand.Read(random) // never fails: crypto/rand aborts the program instead
		h.origin = originPrefix + hex.EncodeToString(random)
		var secret, public string
		if secret, public, err = note.GenerateKey(rand.Reader, h.origin); err != nil {
			return h, nil, "", err
		}
		sealed, err = agekey.Seal(l.opts.Key.Recipient(), []byte(secret+"\n"+public))
		if err != nil {
			return h, nil, "", err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO audit_tree VALUES (?, ?, 0, '')", h.origin, sealed)
	}
	if err != nil {
		return h, nil, "", err
	}
	signer, key, err = openSigner(sealed, l.opts.Key)
	return h, signer, key, err
}

// openSigner decrypts the signing key and returns it with its public key.
func openSigner(sealed []byte, key age.Identity) (signer note.Signer, public string, err error) {
	text, err := agekey.Open(sealed, key)
	if err != nil {
		return nil, "", fmt.Errorf("the signing key of the log of the cluster: %w", err)
	}
	secret, public, _ := strings.Cut(string(text), "\n")
	if signer, err = note.NewSigner(secret); err != nil {
		return nil, "", fmt.Errorf("the signing key of the log of the cluster: %w", err)
	}
	return signer, public, nil
}

// pass passes a checkpoint of the cluster log to the witness outside the cluster.
func (l *Log) pass(ctx context.Context, h *head) error {
	_, err := l.opts.Witness.Submit(ctx, witness.Checkpoint{Size: h.size, Root: h.root, Note: h.signed, Key: h.key,
		Prove: func(old uint64) (proof []tlog.Hash, err error) {
			err = l.db.View(ctx, func(tx database.Tx) (err error) {
				proof, err = tlog.ProveTree(int64(h.size), int64(old), stored(ctx, tx))
				return err
			})
			return proof, err
		}})
	return err
}

// stored reads the hashes of the tree from the rows of its leaves, with one query. The hash of a subtree is stored with
// its last leaf, behind those of lower levels.
func stored(ctx context.Context, tx database.Tx) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		levels, leaves := make([]int, len(indexes)), make([]int64, len(indexes))
		for i, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			levels[i], leaves[i] = level, (n+1)<<level-1
		}
		wanted, err := json.Marshal(leaves)
		if err != nil {
			return nil, err
		}
		var number int64
		var blob []byte
		blobs := map[int64][]byte{}
		err = database.ScanRows(ctx, tx, "SELECT number, hashes FROM audit_leaf WHERE number IN "+
			"(SELECT CAST(value AS BIGINT) FROM json_each(?))", []any{string(wanted)}, []any{&number, &blob},
			func() error {
				blobs[number] = blob
				return nil
			})
		if err != nil {
			return nil, fmt.Errorf("reading the tree of the cluster: %w", err)
		}
		hashes := make([]tlog.Hash, len(indexes))
		for i, level := range levels {
			blob := blobs[leaves[i]]
			if len(blob) < (level+1)*tlog.HashSize {
				return nil, fmt.Errorf("reading the tree of the cluster: leaf %d lacks hashes", leaves[i])
			}
			copy(hashes[i][:], blob[level*tlog.HashSize:])
		}
		return hashes, nil
	})
}
