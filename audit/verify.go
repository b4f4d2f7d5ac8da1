package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit/witness"
	files "github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// maxFindings is how many problems Verify lists.
const maxFindings = 100

// Finding is one difference of a log from what Airlock wrote.
type Finding struct {
	File string `json:"file"`           // base name
	Line int    `json:"line,omitempty"` // 0 when it is about the file
	Seq  uint64 `json:"seq,omitempty"`  // the affected record, if known
	Text string `json:"text"`           // one sentence
}

// Report is what Verify found. A log is sound when Findings is empty.
type Report struct {
	Records  uint64    `json:"records"`
	First    uint64    `json:"first"` // number of the first record; above 1 when older files were moved away
	Last     uint64    `json:"last"`
	Head     string    `json:"head"`               // hash of the last record: compare it with a copy kept elsewhere
	Origin   string    `json:"origin,omitempty"`   // names the log in its checkpoints
	Signed   uint64    `json:"signed"`             // the newest record that the signed head covers
	Unsigned uint64    `json:"unsigned,omitempty"` // later records, which a crash can leave until the next start
	Open     int       `json:"open,omitempty"`     // acts without an end, of running processes or of one that died
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"` // findings that were not listed
	Remarks  []string  `json:"remarks"`        // what could not be proved, and why
	// Key is the public key under the log's name, as an HTTP witness takes it.
	Key     string         `json:"key,omitempty"`
	Witness *WitnessReport `json:"witness,omitempty"` // nil when none was compared
	// Removed are the signed summaries of records that Airlock removed because of their age.
	Removed []*Removal `json:"removed,omitempty"`
}

// OK reports whether the log has no findings.
func (r Report) OK() bool { return len(r.Findings) == 0 }

// VerifyOptions configure Verify. The zero value is usable.
type VerifyOptions struct {
	// Verifier is the public key; empty means the one in Keys. A copy stored elsewhere
	// proves more, because an attacker with access to the log may replace the key.
	Verifier string
	// Keys is the directory of the key files; empty means "keys" in the log's own directory.
	Keys string
	// Partial accepts that the oldest files have been moved away.
	Partial bool
	// Witness is the source of a witness's checkpoints: a file of them, a file of a syslog
	// server's messages, or the URL of an HTTP witness. It may be empty.
	Witness string
	// WitnessKey is the public key of an HTTP witness.
	WitnessKey string
	// Notes are checkpoints of the log that are stored elsewhere. It may be empty.
	Notes [][]byte
	// Copy reports that the directory has a copy of the files with records and of the file of removals, and nothing
	// else. Only Notes prove them, so Verifier is required.
	Copy bool
	// Head is the Head of an earlier report, kept elsewhere; empty means none. The
	// log must still have that record, so one that was put back to an earlier state
	// as a whole, its signatures included, is found.
	Head string
}

// Verify reads a whole log and reports every record that was changed, removed, added or moved,
// and every invalid signature. It never writes. It returns an error if the log cannot be read.
//
// An attacker with the keys can sign any history. Verify detects their changes only with
// VerifyOptions.Head or a witness.
func Verify(dir string, opts *VerifyOptions) (Report, error) {
	o := VerifyOptions{}
	if opts != nil {
		o = *opts
	}
	for attempt := 0; ; attempt++ {
		report, err := verify(dir, o)
		if !errors.Is(err, errGrew) || attempt == maxGrown {
			return report, err
		}
	}
}

// ErrNoLog is returned if an audit log does not exist and never existed.
var ErrNoLog = errors.New("there is no audit log")

// maxGrown is how often a log is verified again because its witness has seen more of it
// meanwhile, or retention has removed a file.
const maxGrown = 3

func verify(dir string, o VerifyOptions) (Report, error) {
	shot, err := takeSnapshot(dir, o)
	if err != nil {
		return Report{}, err
	}
	list := shot.list
	if len(list) == 0 && shot.evidence.blank && o.Witness == "" {
		return Report{}, fmt.Errorf("%w in %q", ErrNoLog, dir)
	}
	v := &verifier{report: Report{Findings: []Finding{}, Remarks: []string{}}, prev: genesis, next: 1, wanted: o.Head}
	v.signatures(shot.evidence)
	v.report.Removed = shot.evidence.removals
	v.witness, v.keepHashes = witnessed{key: shot.key, pinned: o.Verifier != ""}, witness.IsHTTP(o.Witness)
	if v.report.Origin != "" {
		v.report.Key = shot.key.named(v.report.Origin)
	}
	v.note(shot.remarks...)
	if len(list) > 0 && !o.Partial {
		if from, to := shot.evidence.unexplained(list[0].first); from <= to {
			v.find(Finding{filepath.Base(list[0].path), 0, from,
				fmt.Sprintf("records %d to %d are missing, and no signed "+
					"summary says that Airlock removed them: older files were moved away or removed", from, to)})
		}
	}
	if len(list) > 0 {
		v.begin(dir, list[0].first)
	}
	if err := v.readWitness(o); err != nil {
		return Report{}, err
	}
	for i, s := range list {
		limit := int64(-1)
		if i == len(list)-1 {
			limit = shot.lastSize
		}
		if v.segment(s, i == 0, limit); v.gone {
			return Report{}, errGrew
		}
		if i+1 < len(list) {
			v.checkIndex(s)
		}
	}
	v.end()
	return v.report, v.compareWitness(dir, o)
}

type verifier struct {
	report     Report
	evidence   evidence
	facts      facts
	wantHash   map[uint64]bool
	wantRoot   map[uint64]bool
	tree       tree
	hashes     MemoryHashes // the whole tree, if an HTTP witness needs a proof
	witness    witnessed
	keepHashes bool // an HTTP witness is compared
	next       uint64
	prev       string
	sealed     bool
	gone       bool // a file was removed after the snapshot
	open       unfinished
	wanted     string // the hash of a record that is still to come; empty when it has come
}

// snapshot is a log and its evidence at one moment, while no process writes.
type snapshot struct {
	list     []segment
	lastSize int64 // of the newest file; records added later are ignored
	evidence evidence
	key      verifyingKey
	remarks  []string
}

// takeSnapshot reads what must be of one moment.
func takeSnapshot(dir string, o VerifyOptions) (snapshot, error) {
	at, err := findPlaces(dir, o.Keys)
	if err != nil {
		return snapshot{}, err
	}
	var s snapshot
	lock, err := openPlain(filepath.Join(dir, lockFile), os.O_RDONLY)
	if err != nil { // nothing was ever written here, or it was removed
		return s, s.take(dir, at, o)
	}
	defer lock.Close()
	err = files.WithLock(lock, files.Shared, func() error { return s.take(dir, at, o) })
	return s, err
}

func (s *snapshot) take(dir string, at places, o VerifyOptions) (err error) {
	if s.list, err = segments(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(s.list) > 0 {
		info, err := os.Lstat(s.list[len(s.list)-1].path)
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		s.lastSize = info.Size()
	}
	text := o.Verifier
	if text == "" {
		public, err := files.ReadFile(filepath.Join(at.keys, verifierFile))
		if err == nil {
			text = string(public)
		}
	}
	key, err := parseVerifyingKey(text)
	if o.Copy && err == nil {
		s.key, s.evidence = key, evidenceOfCopy(dir, o.Notes, key)
		return nil
	}
	if err != nil {
		s.evidence.blank = len(s.list) == 0 && !isThere(dir) && !isThere(at.position)
		s.evidence.findings = []Finding{{File: verifierFile,
			Text: "the public key is missing or damaged, so no signature can be checked"}}
		return nil
	}
	s.key, s.evidence = key, readEvidence(dir, at.position, key)
	if s.evidence.legacy() {
		s.remarks = append(s.remarks,
			"it was written by an earlier version, whose signatures prove less: the next start takes it over and "+
				"records so")
	} else if s.evidence.position == nil {
		text := "its position is not beside the keys, so whether the log was put back to an earlier state as a whole " +
			"cannot be told"
		if _, err := os.Stat(filepath.Join(at.keys, signKeyFile)); err == nil {
			s.evidence.findings = append(s.evidence.findings, Finding{File: filepath.Base(at.position), Text: text})
		} else {
			s.remarks = append(s.remarks, text)
		}
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// signatures loads what was signed.
func (v *verifier) signatures(e evidence) {
	v.evidence = e
	v.wantHash, v.wantRoot = e.wanted()
	v.facts = facts{hashes: map[uint64]string{}, roots: map[uint64]tlog.Hash{}}
	for _, f := range e.findings {
		v.find(f)
	}
	v.note(e.remarks...)
	if e.head != nil {
		v.report.Origin, v.report.Signed = e.head.origin, e.head.size
	}
}

// begin restores the tree before the first file, as surveyor.begin does.
func (v *verifier) begin(dir string, first uint64) {
	if first <= 1 {
		return
	}
	if r := v.evidence.removed(); r != nil && r.Last == first-1 {
		v.tree = r.tree()
		return
	}
	if root, ok := v.evidence.signedAt(first - 1); ok {
		if hashes, err := openHashes(filepath.Join(dir, treeFile)); err == nil {
			defer hashes.file.Close()
			if t, ok := hashes.at(first-1, root); ok {
				v.tree = t
				return
			}
		}
	}
	v.tree = emptyLeaves(first - 1)
}

// end compares the end of the log with what was signed last.
func (v *verifier) end() {
	v.report.Last, v.report.Head, v.report.Open = v.next-1, v.prev, len(v.open)
	v.facts.last = mark{v.next - 1, v.prev}
	if v.facts.last.seq == 0 {
		v.facts.last = mark{}
	}
	findings, remarks := v.evidence.compare(&v.facts)
	for _, f := range findings {
		v.find(f)
	}
	v.note(remarks...)
	if v.wanted != "" {
		v.find(Finding{headFile, 0, 0, fmt.Sprintf(
			"no record has the hash %s that was kept: the log was put back to an earlier state, or is another",
			visible.Clip(v.wanted, maxShown))})
	}
	if v.report.Last > v.report.Signed {
		v.report.Unsigned = v.report.Last - v.report.Signed
	}
}

func (v *verifier) note(texts ...string) { v.report.Remarks = append(v.report.Remarks, texts...) }

// segment proves the records of a file. Of the newest, limit bytes are looked at.
func (v *verifier) segment(s segment, first bool, limit int64) {
	file := segmentName(s.first)
	if first {
		v.report.First, v.facts.first, v.next = s.first, s.first, s.first
		if r := v.evidence.removed(); r != nil && r.Last == s.first-1 {
			v.prev = r.Hash
		} else if s.first > 1 {
			v.prev = "" // only the first record has it
		}
	} else {
		if !v.sealed {
			v.find(Finding{file, 0, v.next,
				"the file before it does not end as a full file does: records may be missing"})
		}
		if s.first != v.next {
			v.find(Finding{file, 0, v.next, fmt.Sprintf(
				"it begins with record %d where %d was expected: records are missing or were added", s.first, v.next)})
		}
	}
	v.sealed = false
	lines, bytes := 0, int64(0)
	err := eachLine(s.path, 0, func(n int, line []byte) error {
		if bytes += int64(len(line)) + 1; limit >= 0 && bytes > limit {
			bytes -= int64(len(line)) + 1
			return errLimit
		}
		lines = n
		v.line(file, n, line)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		v.gone = true // retention has removed it meanwhile
		return
	}
	if err != nil && !errors.Is(err, errLimit) {
		v.find(Finding{file, lines + 1, v.next, err.Error()})
		return
	}
	if limit >= 0 {
		v.facts.torn = limit - bytes
		return
	}
	if torn, err := tornBytes(s.path); err != nil || torn > 0 {
		v.find(Finding{file, lines + 1, v.next, fmt.Sprintf(
			"it ends in %d bytes that are not a whole record, though it was full", torn)})
	}
}

// errLimit ends the reading of a file that grows.
var errLimit = errors.New("the end that was looked at")

func (v *verifier) line(file string, n int, line []byte) {
	v.report.Records++
	v.add(line)
	if size := v.tree.size; v.wantRoot[size] {
		v.facts.roots[size] = v.tree.root()
	}
	if v.wantHash[v.tree.size] {
		v.facts.hashes[v.tree.size] = claimedHash(line)
	}
	r, err := open(line)
	if err != nil {
		v.find(Finding{file, n, v.next, err.Error()})
		// The next record's prev must be taken on trust, or it would be reported too.
		v.next, v.prev = v.next+1, ""
		return
	}
	switch {
	case r.Seq != v.next:
		v.find(Finding{file, n, r.Seq, fmt.Sprintf(
			"record %d stands where record %d was expected: records were removed, added or moved", r.Seq, v.next)})
	case v.prev != "" && r.Prev != v.prev:
		v.find(Finding{file, n, r.Seq, "it does not follow the record before it"})
	case v.sealed:
		v.find(Finding{file, n, r.Seq, "it comes after the end of a full file"})
	}
	if r.Hash == v.wanted {
		v.wanted = ""
	}
	v.next, v.prev, v.sealed = r.Seq+1, r.Hash, r.Kind == KindRotate
	v.open.see(r)
}

func (v *verifier) find(f Finding) {
	if len(v.report.Findings) == maxFindings {
		v.report.More++
		return
	}
	v.report.Findings = append(v.report.Findings, f)
}
