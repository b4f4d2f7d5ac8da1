package audit

import (
	"fmt"
	"os"
	"path/filepath"

	files "github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// maxFindings is how many problems Verify lists.
const maxFindings = 100

// Finding is one place where a log is not what Airlock wrote.
type Finding struct {
	File string `json:"file"`           // base name
	Line int    `json:"line,omitempty"` // 0 when it is about the file
	Seq  uint64 `json:"seq,omitempty"`  // the record that is affected, as far as it can be told
	Text string `json:"text"`           // one sentence
}

// Report is what Verify found. A log is sound when Findings is empty.
type Report struct {
	Records  uint64    `json:"records"`
	First    uint64    `json:"first"` // number of the first record; above 1 when older files were moved away
	Last     uint64    `json:"last"`
	Head     string    `json:"head"`               // hash of the last record: compare it with a copy kept elsewhere
	Unsigned uint64    `json:"unsigned,omitempty"` // records after the last signature: what a crash leaves, until the next start
	Open     int       `json:"open,omitempty"`     // what was begun and has no end: by living processes, or by one that died last
	Findings []Finding `json:"findings,omitempty"`
	More     int       `json:"more,omitempty"` // findings that were not listed
}

// OK says whether the log is sound.
func (r Report) OK() bool { return len(r.Findings) == 0 }

// VerifyOptions say what a log is held to. The zero value is usable.
type VerifyOptions struct {
	// Verifier is the public key; empty means the one in Keys. A copy that was
	// kept elsewhere proves more: who can change the log may change the key beside it.
	Verifier string
	// Keys is the directory of the key files; empty means "keys" in the log's own directory.
	Keys string
	// Partial accepts that the oldest files have been moved away.
	Partial bool
	// Head is the Head of an earlier report, kept elsewhere; empty means none. The
	// log must still have that record, so one that was put back to an earlier state
	// as a whole, its signatures included, is found.
	Head string
}

// Verify reads a whole log and reports every record that was changed, removed,
// added or moved, and every signature that does not fit. It never writes. The
// error is for a log that cannot be read at all.
//
// Without VerifyOptions.Head it cannot see that a log was put back to an earlier
// state as a whole, its signatures included.
func Verify(dir string, opts *VerifyOptions) (Report, error) {
	o := VerifyOptions{}
	if opts != nil {
		o = *opts
	}
	list, err := segments(dir)
	if err != nil {
		return Report{}, err
	}
	if len(list) == 0 {
		return Report{}, fmt.Errorf("there is no audit log in %q", dir)
	}
	v := verifier{prev: genesis, next: 1, signed: map[uint64]string{}, wanted: o.Head}
	v.signatures(dir, o)
	if list[0].first > 1 && !o.Partial {
		v.find(Finding{filepath.Base(list[0].path), 0, 1, fmt.Sprintf("records 1 to %d are missing: older files were moved away", list[0].first-1)})
	}
	for i, s := range list {
		v.segment(s, i == 0, i == len(list)-1)
	}
	v.end()
	return v.report, nil
}

type verifier struct {
	report Report
	head   checkpoint
	signed map[uint64]string // number → hash, as signed
	next   uint64
	prev   string
	sealed bool
	open   unfinished
	wanted string // the hash of a record that is still to come; empty when it has come
}

// signatures reads what was signed.
func (v *verifier) signatures(dir string, o VerifyOptions) {
	key := o.Verifier
	if key == "" {
		keys := o.Keys
		if keys == "" {
			keys = filepath.Join(dir, "keys")
		}
		text, err := os.ReadFile(filepath.Join(keys, verifierFile))
		if err == nil {
			key = string(text)
		}
	}
	s, findings := readSignatures(dir, key)
	for _, f := range findings {
		v.find(f)
	}
	v.head = s.head
	for _, c := range append(s.history, s.head) {
		if c.seq > 0 {
			v.signed[c.seq] = c.hash
		}
	}
}

// end compares the end of the log with what was signed last.
func (v *verifier) end() {
	v.report.Last, v.report.Head, v.report.Open = v.next-1, v.prev, len(v.open)
	last := v.head.seq
	for seq := range v.signed {
		last = max(last, seq)
	}
	if last > v.report.Last {
		v.find(Finding{headFile, 0, v.next, fmt.Sprintf("records %d to %d are missing: they were signed", v.next, last)})
	}
	if v.wanted != "" {
		v.find(Finding{headFile, 0, 0, fmt.Sprintf("no record has the hash %s that was kept: the log was put back to an earlier state, or is another", visible.Clip(v.wanted, maxShown))})
	}
	if v.report.Last > v.head.seq {
		v.report.Unsigned = v.report.Last - v.head.seq
	}
}

func (v *verifier) segment(s segment, first, last bool) {
	file := fmt.Sprintf("%s%012d%s", segmentPrefix, s.first, segmentSuffix)
	if first {
		v.report.First, v.next = s.first, s.first
		if s.first > 1 {
			v.prev = "" // only the first record can say
		}
	} else {
		if !v.sealed {
			v.find(Finding{file, 0, v.next, "the file before it does not end as a full file does: records may be missing"})
		}
		if s.first != v.next {
			v.find(Finding{file, 0, v.next, fmt.Sprintf("it begins with record %d where %d was expected: records are missing or were added", s.first, v.next)})
		}
	}
	v.sealed = false
	lines := 0
	err := eachLine(s.path, 0, func(n int, line []byte) error {
		lines = n
		v.line(file, n, line)
		return nil
	})
	if err != nil {
		v.find(Finding{file, lines + 1, v.next, err.Error()})
	}
	if torn, err := v.torn(s.path); err != nil || torn > 0 {
		text := fmt.Sprintf("it ends in %d bytes that are no whole record", torn)
		if !last {
			text += ", though it was full"
		}
		v.find(Finding{file, lines + 1, v.next, text})
	}
}

// torn measures a file's unfinished end while no living process writes.
func (v *verifier) torn(path string) (int64, error) {
	if lock, err := os.Open(filepath.Join(filepath.Dir(path), "lock")); err == nil {
		defer lock.Close()
		var bytes int64
		err := files.While(lock, files.Shared, func() error {
			bytes, err = tornBytes(path)
			return err
		})
		return bytes, err
	}
	return tornBytes(path)
}

func (v *verifier) line(file string, n int, line []byte) {
	v.report.Records++
	r, err := open(line)
	if err != nil {
		v.find(Finding{file, n, v.next, err.Error()})
		// The next record's prev must be taken on trust, or it would be reported too.
		v.next, v.prev = v.next+1, ""
		return
	}
	switch {
	case r.Seq != v.next:
		v.find(Finding{file, n, r.Seq, fmt.Sprintf("record %d stands where record %d was expected: records were removed, added or moved", r.Seq, v.next)})
	case v.prev != "" && r.Prev != v.prev:
		v.find(Finding{file, n, r.Seq, "it does not follow the record before it"})
	case v.sealed:
		v.find(Finding{file, n, r.Seq, "it comes after the end of a full file"})
	}
	if hash, ok := v.signed[r.Seq]; ok && hash != r.Hash {
		v.find(Finding{file, n, r.Seq, "it is not the record that was signed"})
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
