package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// survey is what a start finds in the files of a log. It reads those that may
// have changed since an earlier start read them, and the newest always.
type survey struct {
	facts
	lastRecord Record
	tree       tree        // over all records
	from       uint64      // the leaf of the first of stored, from 0
	stored     []tlog.Hash // of the files that were read
	open       unfinished  // of all writers; set only if every record was read
	damage     error       // a record behind the newest signature, or of an earlier format, that does not fit
	read       []fingerprint
}

// fingerprint is a full file that was compared with its signature. Its change
// time cannot be set back without changing the clock of the machine.
type fingerprint struct {
	first uint64
	inode uint64
	size  int64
	ctime int64 // nanoseconds
}

func takeFingerprint(s segment) (fingerprint, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(s.path, &stat); err != nil {
		return fingerprint{}, fmt.Errorf("looking at %q: %w", s.path, err)
	}
	return fingerprint{s.first, stat.Ino, stat.Size, stat.Ctim.Nano()}, nil
}

// settledAfter is how old a file must be before its fingerprint counts: one that
// is changed within the grain of the clock has the same change time.
var settledAfter = 2 * time.Second // a variable for tests

// settle has the kernel write a file out, so that what changes it from now on
// changes its change time too: a page that a process has mapped and changed can be
// changed again without, until it was written out.
func settle(s segment) error {
	f, err := openPlain(s.path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// noticesMaps reports whether a file system gives a file that is changed through
// a mapping a new change time. Those in memory do not.
func noticesMaps(dir string) bool {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return false
	}
	switch stat.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1: // ZFS has no name there
		return true
	}
	return false
}

// surveyor reads the files of a log for a start.
type surveyor struct {
	survey
	evidence *evidence
	hashes   hashFile
	signed   uint64 // the newest record that a signature covers; those behind it are proven one by one
	each     bool   // prove every record, as one of an earlier format needs
	wantHash map[uint64]bool
	wantRoot map[uint64]bool
	next     uint64
	prev     string
	sealed   bool   // the last line is the end of a full file
	unread   []byte // the last line, if its hash was not checked
	buffer   []byte // reused between lines
}

// takeSurvey reads the listed files, beginning with the first one that may have changed since
// it was last read.
func takeSurvey(list []segment, e *evidence, hashes hashFile, known map[fingerprint]bool) (*survey, error) {
	v := &surveyor{evidence: e, hashes: hashes, each: e.head == nil || e.head.legacy != ""}
	v.wantHash, v.wantRoot = e.wanted()
	v.survey.hashes, v.survey.roots = map[uint64]string{}, map[uint64]tlog.Hash{}
	for size := range v.wantRoot {
		v.signed = max(v.signed, size)
	}
	if len(list) == 0 {
		return &v.survey, nil
	}
	v.first = list[0].first
	begin := v.unchanged(list, known)
	for begin > 0 && !v.continueFrom(list[begin].first-1) {
		begin--
	}
	if begin == 0 {
		v.begin(list[0].first)
	}
	v.from = v.tree.size
	for _, s := range list[begin:] {
		if err := settle(s); err != nil {
			return nil, fmt.Errorf("looking at %q: %w", s.path, err)
		}
		print, err := takeFingerprint(s)
		if err != nil {
			return nil, err
		}
		if v.next != s.first && v.damage == nil {
			v.damage = fmt.Errorf("file %q begins with record %d where %d was expected", filepath.Base(s.path), s.first,
				v.next)
		}
		if v.next > list[begin].first && !v.sealed && v.damage == nil {
			v.damage = fmt.Errorf("the file before %q does not end as a full file does", filepath.Base(s.path))
		}
		v.sealed = false
		if err := eachLine(s.path, 0, func(_ int, line []byte) error { v.line(line); return nil }); err != nil {
			return nil, err
		}
		if v.torn, err = tornBytes(s.path); err != nil {
			return nil, err
		}
		v.read = append(v.read, print)
	}
	if len(v.unread) > 0 {
		v.lastRecord.Hash = claimedHash(v.unread)
	}
	v.last = mark{v.lastRecord.Seq, v.lastRecord.Hash}
	if v.last.seq == 0 && v.first > 1 {
		v.damage = fmt.Errorf("its only file %q has no record, and what came before is missing", segmentName(v.first))
	}
	return &v.survey, nil
}

// leaf is tlog.RecordHash, without a new hash for each line.
func (v *surveyor) leaf(line []byte) tlog.Hash {
	v.buffer = append(append(v.buffer[:0], 0), line...)
	return sha256.Sum256(v.buffer)
}

// unchanged returns how many files need not be read again. The last always is,
// and those with records that the position names.
func (v *surveyor) unchanged(list []segment, known map[fingerprint]bool) int {
	if v.each {
		return 0
	}
	n := 0
	for n < len(list)-1 {
		print, err := takeFingerprint(list[n])
		if err != nil || !known[print] || v.evidence.position == nil ||
			list[n+1].first > v.evidence.position.durable.seq {
			break
		}
		n++
	}
	return n
}

// continueFrom restores the tree as it was signed at a size.
func (v *surveyor) continueFrom(size uint64) bool {
	root, ok := v.evidence.signedAt(size)
	if !ok {
		return false
	}
	v.tree, ok = v.hashes.at(size, root)
	v.next, v.prev = size+1, ""
	return ok
}

// begin restores the tree before the first file of a log. Signed removals contain it. Where earlier
// files were moved away, the tree was signed at their end, or has empty leaves in their place
// when that was before there were trees.
func (v *surveyor) begin(first uint64) {
	if r := v.evidence.removed(); r != nil && r.Last == first-1 {
		v.tree, v.next, v.prev = r.tree(), first, r.Hash
		return
	}
	if first > 1 && v.continueFrom(first-1) {
		return
	}
	v.tree = emptyLeaves(first - 1)
	v.next, v.prev = first, ""
	if first == 1 {
		v.prev = genesis
	}
}

// emptyLeaves is the tree of records that were moved away before there were trees.
func emptyLeaves(size uint64) tree {
	var t tree
	for t.size < size {
		t.add(tlog.RecordHash(nil), nil)
	}
	return t
}

func (v *surveyor) line(line []byte) {
	seq := v.next
	if v.sealed && v.damage == nil {
		v.damage = fmt.Errorf("record %d comes after the end of a full file", seq)
	}
	v.sealed = bytes.Contains(line, []byte(`,"kind":"rotate",`))
	v.stored = v.tree.add(v.leaf(line), v.stored)
	if v.wantRoot[seq] {
		v.roots[seq] = v.tree.root()
	}
	if v.wantHash[seq] {
		v.survey.hashes[seq] = claimedHash(line)
	}
	v.next++
	v.lastRecord = Record{Seq: seq}
	if !v.each && seq < v.signed {
		v.unread = append(v.unread[:0], line...)
		return
	}
	if len(v.unread) > 0 {
		v.prev, v.unread = claimedHash(v.unread), v.unread[:0]
	}
	r, err := open(line)
	switch {
	case v.damage != nil:
	case err != nil:
		v.damage = fmt.Errorf("record %d is damaged: %w", seq, err)
	case r.Seq != seq || v.prev != "" && r.Prev != v.prev:
		v.damage = fmt.Errorf("record %d does not follow the one before it", seq)
	}
	v.prev, v.lastRecord = r.Hash, r
	v.open.see(r)
}

// fingerprintsName is the file beside the keys with what starts have read.
func fingerprintsName(positionName string) string {
	return strings.Replace(positionName, "position", "verified", 1)
}

func readFingerprints(path string) map[fingerprint]bool {
	known := map[fingerprint]bool{}
	text, err := files.ReadFile(path)
	if err != nil {
		return known // every file is read again
	}
	for line := range strings.Lines(string(text)) {
		var f fingerprint
		if n, err := fmt.Sscanf(line, "%d %d %d %d\n", &f.first, &f.inode, &f.size, &f.ctime); err == nil && n == 4 {
			known[f] = true
		}
	}
	return known
}

// keepFingerprints notes which full files were read and are old enough.
func keepFingerprints(path string, list []segment, known map[fingerprint]bool, read []fingerprint) error {
	now, noticed := time.Now(), len(list) > 0 && noticesMaps(filepath.Dir(list[0].path))
	for _, f := range read {
		if noticed && now.Sub(time.Unix(0, f.ctime)) > settledAfter {
			known[f] = true
		}
	}
	var text strings.Builder
	for _, s := range list[:max(0, len(list)-1)] {
		print, err := takeFingerprint(s)
		if err == nil && known[print] {
			fmt.Fprintf(&text, "%d %d %d %d\n", print.first, print.inode, print.size, print.ctime)
		}
	}
	if old, err := files.ReadFile(path); err == nil && string(old) == text.String() || text.Len() == 0 &&
		errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return files.WriteFile(path, []byte(text.String()), 0o600)
}
