package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// WitnessReport is what comparing with a witness came to.
type WitnessReport struct {
	Checkpoints int    `json:"checkpoints"` // of this log that the witness has; of an HTTP witness the one it signed
	Newest      uint64 `json:"newest"`      // the newest record that they cover
}

// witnessed is what a witness has of a log.
type witnessed struct {
	key    verifyingKey
	pinned bool              // the key was kept elsewhere
	kept   []checkpoint      // of this log
	others map[string]uint64 // of other logs with the same key: how far they go
	// strangers are logs with another key, and their sizes. An attacker who rewrites a log can
	// also create a key, so only a pinned key shows that they are unrelated.
	strangers map[string]uint64
}

// errGrew is returned if a witness has seen more records than were read of a growing log, or if
// retention has removed a file of it.
var errGrew = errors.New("the log changed while it was verified")

// witnessFile names the witness in findings.
const witnessFile = "witness"

// readWitness reads the checkpoints in a witness's file, so that the roots that they
// name are computed while the log is read.
func (v *verifier) readWitness(o VerifyOptions) error {
	v.witness.others, v.witness.strangers = map[string]uint64{}, map[string]uint64{}
	for _, signed := range o.Notes {
		v.readWitnessed(signed)
	}
	if o.Witness == "" || witness.IsHTTP(o.Witness) {
		return nil
	}
	path, ok := witness.File(o.Witness)
	if !ok {
		path = o.Witness // a relative path
	}
	notes, err := witness.Stored(path, originPrefix)
	if err != nil {
		return err
	}
	for _, signed := range notes {
		v.readWitnessed(signed)
	}
	return nil
}

// readWitnessed takes note of one checkpoint that a witness has.
func (v *verifier) readWitnessed(signed []byte) {
	w := &v.witness
	c, err := openCheckpoint(signed, w.key)
	if err != nil {
		if c, err = readCheckpoint(signed); err == nil && c.legacy == "" {
			w.strangers[c.origin] = max(w.strangers[c.origin], c.size)
		}
		return // or it was cut off when a disk was full
	}
	if c.origin != v.report.Origin {
		w.others[c.origin] = max(w.others[c.origin], c.size)
		return
	}
	w.kept = append(w.kept, c)
	v.wantRoot[c.size] = true
}

// compareStrangers looks at the checkpoints with another key.
func (v *verifier) compareStrangers() {
	for _, origin := range slices.Sorted(maps.Keys(v.witness.strangers)) {
		size, shown := v.witness.strangers[origin], visible.Clip(origin, maxShown)
		switch {
		case origin == v.report.Origin:
			v.find(Finding{witnessFile, 0, 0, fmt.Sprintf(
				"the witness has a checkpoint of record %d of this log (%s) that its key has not signed: the log was "+
					"signed anew with another key, or the witness's file was changed", size, shown)})
		case !v.witness.pinned:
			v.find(Finding{witnessFile, 0, 0, fmt.Sprintf(
				"the witness has %d records of another log under another key (%s): this log may have been begun in "+
					"its place, key and all. Where other logs are kept there too, name this one's key with --key, "+
					"from a copy that was kept elsewhere", size, shown)})
		}
	}
}

// compareWitness compares the log with what its witness has.
func (v *verifier) compareWitness(dir string, o VerifyOptions) error {
	switch {
	case o.Witness == "" && len(o.Notes) == 0:
		return nil
	case witness.IsHTTP(o.Witness):
		return v.askWitness(dir, o)
	}
	find := func(seq uint64, text string, values ...any) {
		v.find(Finding{witnessFile, 0, seq, fmt.Sprintf(text, values...)})
	}
	w := &WitnessReport{Checkpoints: len(v.witness.kept)}
	v.report.Witness = w
	if len(v.witness.kept) == 0 {
		find(0, "the witness has no checkpoint of this log (%s): it is another, or was signed anew",
			visible.Clip(v.report.Origin, maxShown))
	}
	for _, origin := range slices.Sorted(maps.Keys(v.witness.others)) {
		find(0, "the witness has %d records of another log under the same key (%s): this log may have been begun in "+
			"its place", v.witness.others[origin], visible.Clip(origin, maxShown))
	}
	v.compareStrangers()
	for _, c := range v.witness.kept {
		w.Newest = max(w.Newest, c.size)
		if root, ok := v.facts.roots[c.size]; ok && root != c.root {
			find(c.size, "the records up to this one are not those that the witness has a checkpoint of")
			break
		}
	}
	if w.Newest > v.report.Last {
		find(v.next, "records %d to %d are missing: the witness has a checkpoint of them", v.next, w.Newest)
	}
	at, err := findPlaces(dir, o.Keys)
	if err != nil || o.Witness == "" {
		return err
	}
	if b, err := readBrought(at.progressFile(ofWitness)); err == nil && b.size > w.Newest {
		find(b.size, "the witness lacks checkpoints that it had confirmed: it has none behind record %d", w.Newest)
	}
	return nil
}

// askWitness submits the newest kept checkpoint to an HTTP witness, with a proof that it
// extends the last checkpoint that the witness has seen. The witness signs it only if the
// proof is valid.
func (v *verifier) askWitness(dir string, o VerifyOptions) error {
	w, err := witness.Open(o.Witness, o.WitnessKey)
	if err != nil {
		return err
	}
	kept := v.evidence.kept
	if len(kept) == 0 || kept[len(kept)-1].legacy != "" {
		v.find(Finding{witnessFile, 0, 0, "the log has no kept checkpoint that the witness could know"})
		return nil
	}
	newest := &kept[len(kept)-1]
	_, err = w.Submit(context.Background(), witness.Checkpoint{Size: newest.size, Note: newest.signed,
		Prove: func(old uint64) ([]tlog.Hash, error) {
			return v.prove(dir, newest.size, old)
		}})
	if errors.Is(err, witness.ErrConflict) {
		if again := readEvidence(dir, "", v.witness.key); len(again.kept) > len(kept) {
			return errGrew
		}
		v.find(Finding{witnessFile, 0, newest.size, err.Error()})
		err = nil
	}
	if err != nil {
		return fmt.Errorf("comparing with the witness: %w", err)
	}
	v.report.Witness = &WitnessReport{Checkpoints: 1, Newest: newest.size}
	return nil
}

// prove returns a consistency proof from the records or, if the oldest were moved away, from
// the tree's file.
func (v *verifier) prove(dir string, size, old uint64) ([]tlog.Hash, error) {
	if v.report.First == 1 {
		return tlog.ProveTree(int64(size), int64(old), v.hashes)
	}
	hashes, err := openHashes(filepath.Join(dir, treeFile))
	if err != nil {
		return nil, err
	}
	defer hashes.file.Close()
	return tlog.ProveTree(int64(size), int64(old), hashes)
}

// add appends a line to the tree.
func (v *verifier) add(line []byte) {
	stored := v.tree.add(tlog.RecordHash(line), nil)
	if v.keepHashes {
		v.hashes = append(v.hashes, stored...)
	}
}
