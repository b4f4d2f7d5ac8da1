package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	// removalsFile has a signed note for each removal of old files. Notes are only appended.
	removalsFile = "removals"
	// removalTop begins the text of such a note, so that it cannot be taken for a checkpoint.
	removalTop = "airlock audit removal"
)

// Removal is the signed summary of records that were removed because of their age. It
// contains no names, so that it can be kept forever.
type Removal struct {
	Origin  string         `json:"origin"` // of the log's checkpoints
	First   uint64         `json:"first"`  // numbers of the removed records
	Last    uint64         `json:"last"`
	From    string         `json:"from"` // times of these two records
	Until   string         `json:"until"`
	Removed string         `json:"removed"` // when
	Kinds   map[Kind]int   `json:"kinds"`   // how many records of each kind
	Results map[string]int `json:"results"` // how many outcomes of each word, such as "refused"
	Hash    string         `json:"hash"`    // of record Last: the first record that is left names it
	Tree    []tlog.Hash    `json:"tree"`    // the roots of the perfect subtrees over records 1 to Last
}

// tree returns the Merkle tree over the records up to the last removed one.
func (r *Removal) tree() tree { return tree{r.Last, slices.Clone(r.Tree)} }

// String describes the removal in one line.
func (r *Removal) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		parts = append(parts, fmt.Sprintf("%d × %s", r.Kinds[kind], kind))
	}
	return fmt.Sprintf("records %d to %d of %s to %s were removed on %s: %s", r.First, r.Last, shortTime(r.From),
		shortTime(r.Until), shortTime(r.Removed), strings.Join(parts, ", "))
}

// sign returns the removal as a signed note.
func (r *Removal) sign(key *signingKey) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("signing a removal: %w", err)
	}
	signer, err := key.signer(r.Origin)
	if err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: removalTop + "\n" + string(text) + "\n"}, signer)
}

// openRemoval reads a note with the signature of the key.
func openRemoval(signed []byte, key verifyingKey) (*Removal, error) {
	text, ok := bytes.CutPrefix(signed, []byte(removalTop+"\n"))
	line, _, cut := bytes.Cut(text, []byte("\n"))
	var r Removal
	if !ok || !cut || strictjson.Unmarshal(line, &r) != nil {
		return nil, errors.New("it is not a removal")
	}
	verifier, err := key.verifier(r.Origin)
	if err != nil {
		return nil, err
	}
	if _, err := note.Open(signed, note.VerifierList(verifier)); err != nil {
		return nil, err
	}
	return &r, nil
}

// readRemovals reads and checks the signed removals of a log.
func (e *evidence) readRemovals(dir string, key verifyingKey) {
	data, err := readPlain(filepath.Join(dir, removalsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.findings = append(e.findings, Finding{File: removalsFile, Text: "the removals cannot be read: " +
			err.Error()})
		return
	}
	notes, rest := keptNotes(data)
	e.cut = int64(len(data) - len(rest)) // a process that was killed leaves the beginning of a note
	for _, signed := range notes {
		r, err := openRemoval(signed, key)
		if last := e.removed(); err != nil || last != nil && (r.First != last.Last+1 || r.Origin != last.Origin) ||
			e.head != nil && r.Origin != e.head.origin {
			e.findings = append(e.findings, Finding{File: removalsFile,
				Text: "a removal is damaged or forged, or does " +
					"not follow the one before it"})
			return
		}
		e.removals = append(e.removals, r)
	}
}

// removed returns the newest removal, or nil if nothing was removed.
func (e *evidence) removed() *Removal {
	if len(e.removals) == 0 {
		return nil
	}
	return e.removals[len(e.removals)-1]
}

// unexplained returns the range of the records before first that no signed removal covers. It is
// empty (from > to) if all are covered.
func (e *evidence) unexplained(first uint64) (from, to uint64) {
	switch last := e.removed(); {
	case last == nil:
		return 1, first - 1
	case e.removals[0].First > 1:
		return 1, e.removals[0].First - 1
	default:
		return last.Last + 1, first - 1
	}
}

// summarize adds the records of a full file to the removal. It returns an error if they are not those
// that were signed. roots are the signed roots of the tree by size.
func (r *Removal) summarize(seg segment, next uint64, roots map[uint64]tlog.Hash) error {
	t, prev := r.tree(), r.Hash
	name := filepath.Base(seg.path)
	if t.size != seg.first-1 {
		return fmt.Errorf("file %q does not follow the records that were removed before", name)
	}
	var last Record
	err := eachLine(seg.path, 0, func(_ int, line []byte) error {
		record, err := open(line)
		if err != nil || record.Seq != t.size+1 || prev != "" && record.Prev != prev {
			return fmt.Errorf("record %d of file %q is not as it was written", t.size+1, name)
		}
		t.add(tlog.RecordHash(line), nil)
		prev, last = record.Hash, record
		r.Kinds[record.Kind]++
		if record.Outcome != "" {
			r.Results[record.Outcome]++
		}
		r.From = cmp.Or(r.From, record.Time)
		return nil
	})
	if err != nil {
		return err
	}
	if signed, ok := roots[t.size]; t.size != next-1 || last.Kind != KindRotate || ok && signed != t.root() {
		return fmt.Errorf("the records of file %q are not those that were signed", name)
	}
	r.Last, r.Until, r.Hash, r.Tree = t.size, last.Time, last.Hash, t.roots
	return nil
}
