package audit

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// tamperedError reports that a log was changed by another program than Airlock.
type tamperedError struct {
	places  places
	finding Finding
}

// Error is one sentence.
func (e *tamperedError) Error() string {
	return fmt.Sprintf("%s: the log was changed, put back or cut short (%s)", e.finding.Text, e.finding.File)
}

// Hint returns the command to type.
func (e *tamperedError) Hint() string {
	return fmt.Sprintf("`airlock audit verify` shows what is wrong; to begin a new log, move %q away as evidence, and "+
		"with it %q", e.places.dir, e.places.position)
}

// openAppender opens and repairs the log.
func openAppender(dir string, opts Options) (*appender, error) {
	var undo cleanup.Stack
	defer undo.Run()
	at, err := findPlaces(dir, opts.Keys)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	h, err := loadHasher(at.keys)
	if err != nil {
		return nil, err
	}
	key, err := loadSigningKey(at.keys)
	if err != nil {
		return nil, err
	}
	s := &appender{places: at, opts: opts, hasher: h, key: key}
	undo.Add(s.release)
	if err := s.files.open(at); err != nil {
		return nil, err
	}
	if err := s.locked(s.start); err != nil {
		return nil, err
	}
	undo.Keep()
	return s, nil
}

// start prepares the log for appending. The caller must hold the lock.
func (s *appender) start() error {
	list, err := segments(s.places.dir)
	if err != nil {
		return err
	}
	e := readEvidence(s.places.dir, s.places.position, s.key.public)
	if e.legacy() && legacyWriterLives(s.places.dir) {
		return errors.New("an Airlock of an earlier version has it open: end that first")
	}
	known := readFingerprints(s.places.verified)
	found, err := takeSurvey(list, &e, s.files.tree, known)
	if err != nil {
		return err
	}
	remarks, err := s.judge(&e, found)
	if err != nil {
		return err
	}
	if err := s.adopt(&e, found, list); err != nil {
		return err
	}
	if err := s.record(&e, found, remarks); err != nil {
		return err
	}
	if err := s.closeUnfinished(); err != nil {
		return err
	}
	if err := s.keepCheckpoint(); err != nil {
		return err
	}
	if err := s.retain(); err != nil {
		return err
	}
	if list, err = segments(s.places.dir); err != nil {
		return err
	}
	if e.legacy() {
		if err := os.RemoveAll(legacyWriters(s.places.dir)); err != nil {
			return err
		}
	}
	return keepFingerprints(s.places.verified, list, known, found.read)
}

// judge compares the log with the evidence for it before this process signs anything:
// otherwise a log that was changed while no Airlock was running would be valid again after the
// next start. The remarks describe states that a killed Airlock may have left, or that an
// attacker may have imitated.
func (s *appender) judge(e *evidence, found *survey) (remarks []string, err error) {
	if found.last.seq == 0 && e.blank {
		return nil, found.damage // a new log
	}
	findings, remarks := e.compare(&found.facts)
	remarks = append(remarks, e.remarks...)
	if e.blank && found.damage == nil && found.last.seq <= maxUnsigned {
		return []string{"nothing of it is signed; what was cut off or added before, if anything, cannot be told"}, nil
	}
	findings = append(e.findings, findings...)
	if found.damage != nil {
		findings = append(findings, Finding{File: segmentName(found.last.seq), Text: found.damage.Error()})
	}
	if len(findings) > 0 {
		return nil, &tamperedError{s.places, findings[0]}
	}
	p := e.position
	if from, to := e.unexplained(found.first); p != nil && found.first > p.first && from <= to {
		remarks = append(remarks, fmt.Sprintf("the files with records %d to %d were moved away or removed", p.first,
			found.first-1))
	}
	if p == nil && !e.legacy() {
		remarks = append(remarks,
			"its position is not beside the keys: whether it was put back to an earlier state cannot be told")
	}
	return remarks, nil
}

// adopt continues the log at its end, and opens what is needed to append.
func (s *appender) adopt(e *evidence, found *survey, list []segment) error {
	s.sign = signing{origin: originOf(e), kept: e.keptState()}
	if e.head != nil {
		s.sign.length = len(e.head.signed)
	}
	if e.rest > 0 {
		if err := s.files.kept.Truncate(s.sign.kept.bytes); err != nil {
			return err
		}
	}
	s.tree = found.tree
	if err := s.files.tree.update(found.from, found.stored); err != nil {
		return err
	}
	last := found.lastRecord
	s.end = cursorEnd{next: 1, prev: genesis}
	if last.Seq > 0 {
		s.end.advance(last)
	}
	if err := s.beginPosition(e, found); err != nil {
		return err
	}
	var err error
	if s.writer, err = newWriter(s.places.writers, s.end.next); err != nil {
		return err
	}
	s.disk.wrote(s.end.next - 1) // the last records of a killed process may not be durable
	return s.openLast(list)
}

func originOf(e *evidence) string {
	switch {
	case e.head != nil && e.head.legacy == "":
		return e.head.origin
	case e.position != nil:
		return e.position.origin
	}
	random := make([]byte, 16)
	rand.Read(random) // never fails: crypto/rand aborts the program instead
	return originPrefix + hex.EncodeToString(random)
}

// beginPosition opens the position. A new one is durable, its name included,
// before anything is written: from then on a log without records is a log that was emptied.
func (s *appender) beginPosition(e *evidence, found *survey) error {
	var err error
	if s.files.position, err = openPlain(s.places.position, os.O_CREATE|os.O_RDWR); err != nil {
		return err
	}
	next := position{boot: bootID(), origin: s.sign.origin, first: max(1, found.first), base: s.end.mark()}
	if e.position != nil {
		next.durable = e.position.durable
	}
	if err := s.writePosition(next); err != nil {
		return err
	}
	if e.position != nil {
		return nil // the head counts once this process has synced it
	}
	return errors.Join(s.files.position.Sync(), syncDirectory(s.places.keys), syncDirectory(s.places.dir))
}

// openLast opens the file that records are appended to. The newest may have no
// whole record, when its maker died before it had written one.
func (s *appender) openLast(list []segment) error {
	if len(list) == 0 {
		return s.openSegment(1, true)
	}
	if newest := list[len(list)-1]; newest.first == s.end.next && newest.first > 1 {
		if err := s.openSegment(newest.first, false); err != nil {
			return err
		}
		return s.cutTorn()
	}
	if err := s.openAtEnd(list[len(list)-1].first); err != nil {
		return err
	}
	if err := s.cutTorn(); err != nil || !s.end.sealed {
		return err
	}
	return s.follow()
}

// openAtEnd opens the file with the last record, behind it.
func (s *appender) openAtEnd(first uint64) error {
	sealed := s.end.sealed
	if err := s.openSegment(first, false); err != nil {
		return err
	}
	size, torn, err := wholeBytes(s.files.active)
	s.end.bytes, s.end.sealed = size-torn, sealed
	return err
}

// record writes the records of the start.
func (s *appender) record(e *evidence, found *survey, remarks []string) error {
	var records []Record
	if s.end.next == 1 {
		records = append(records, Record{Kind: KindLogStart, Time: s.now()})
	}
	if e.legacy() {
		records = append(records, Record{Kind: KindUpgrade, Time: s.now(), Detail: fmt.Sprintf(
			"records %d to %d were written by an earlier version; they fit its signatures, the last of which is of "+
				"record %d with the hash %s; from here on checkpoints have the form of C2SP, with a Merkle tree over "+
				"all records",
			found.first, found.last.seq, e.head.size, e.head.legacy)})
		records = append(records, found.open.closing(endedEarly, s.now())...)
	}
	if len(remarks) > 0 {
		records = append(records, Record{Kind: KindRecovered, Time: s.now(), Detail: strings.Join(remarks, "; ")})
	}
	return s.put(records)
}
