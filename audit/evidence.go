package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// evidence is all that vouches for a log: the signed head, the kept checkpoints,
// and the position that is kept beside the keys.
type evidence struct {
	position *position    // nil if it does not exist
	head     *checkpoint  // nil if it is missing or damaged
	kept     []checkpoint // in the order of the file
	rest     int64        // bytes of an unfinished checkpoint at the end of the kept ones
	removals []*Removal   // in the order of the file
	cut      int64        // bytes of the file of removals without an unfinished one at its end
	findings []Finding    // in the evidence itself
	remarks  []string
	// blank reports that no evidence exists.
	blank bool
	// copied reports that the files with records are a copy. Records behind the newest checkpoint are normal.
	copied bool
}

// keptState returns what the next checkpoint states about its predecessors.
func (e *evidence) keptState() keptState {
	k := keptState{count: uint64(len(e.kept))}
	for _, c := range e.kept {
		k.bytes += int64(len(c.signed)) + 1
	}
	if len(e.kept) > 0 {
		last := &e.kept[len(e.kept)-1]
		k.digest, k.size = last.digest(), last.size
	}
	return k
}

// legacy reports whether the log has the format before C2SP's checkpoints, which had no
// positions.
func (e *evidence) legacy() bool {
	return e.head != nil && e.head.legacy != "" && (e.position == nil || e.position.durable.seq == 0)
}

// checkpoints calls visit for all that were signed.
func (e *evidence) checkpoints(visit func(file string, c *checkpoint)) {
	for i := range e.kept {
		visit(historyFile, &e.kept[i])
	}
	if e.head != nil {
		visit(headFile, e.head)
	}
}

// wanted lists the records that the evidence names: those whose hash and those
// whose tree's root it knows.
func (e *evidence) wanted() (hashes, roots map[uint64]bool) {
	hashes, roots = map[uint64]bool{}, map[uint64]bool{}
	e.checkpoints(func(_ string, c *checkpoint) {
		if c.legacy != "" {
			hashes[c.size] = true
		} else {
			roots[c.size] = true
		}
	})
	if e.position != nil {
		hashes[e.position.durable.seq] = true
	}
	return hashes, roots
}

// signedAt returns the root of the tree of a size, if it was signed.
func (e *evidence) signedAt(size uint64) (root tlog.Hash, ok bool) {
	e.checkpoints(func(_ string, c *checkpoint) {
		if c.size == size && c.legacy == "" {
			root, ok = c.root, true
		}
	})
	return root, ok
}

// readEvidence reads and checks it. Called with the log's lock held, so that it
// and the log are of one moment. positionFile may be empty.
func readEvidence(dir, positionFile string, key verifyingKey) evidence {
	e := evidence{}
	find := func(file, text string) { e.findings = append(e.findings, Finding{File: file, Text: text}) }
	head, headErr := readPlain(filepath.Join(dir, headFile))
	if c, err := openCheckpoint(head, key); len(head) > 0 && err == nil {
		e.head = &c
	} else if len(head) > 0 {
		find(headFile, "the signed head is damaged or forged")
	} else {
		find(headFile, "the signed head is missing")
	}
	history, historyErr := readPlain(filepath.Join(dir, historyFile))
	if len(history) == 0 {
		find(historyFile, "the kept checkpoints are missing")
	}
	e.readKept(history, key)
	e.readRemovals(dir, key)
	if positionFile != "" {
		var err error
		if e.position, err = readPosition(positionFile); err != nil {
			find(filepath.Base(positionFile), "the position of the log cannot be read: "+err.Error())
		}
	}
	e.checkHead()
	e.blank = e.position == nil && len(history) == 0 && len(head) == 0 &&
		(headErr == nil || errors.Is(headErr, fs.ErrNotExist)) &&
		(historyErr == nil || errors.Is(historyErr, fs.ErrNotExist))
	if p := e.position; p != nil && p.durable.seq == 0 && e.head == nil && len(head) == 0 && len(history) == 0 {
		e.findings = nil // a log whose maker was killed before it had signed anything
	}
	return e
}

// evidenceOfCopy returns the evidence for a copy of a log: checkpoints that are stored elsewhere, and its removals.
func evidenceOfCopy(dir string, notes [][]byte, key verifyingKey) evidence {
	e := evidence{copied: true}
	for _, signed := range notes {
		c, err := openCheckpoint(signed, key)
		if err != nil {
			e.findings = append(e.findings, Finding{File: witnessFile, Text: "a checkpoint is damaged or forged"})
			continue
		}
		e.kept = append(e.kept, c)
	}
	slices.SortStableFunc(e.kept, func(a, b checkpoint) int { return cmp.Compare(a.size, b.size) })
	if n := len(e.kept); n > 0 {
		e.head = &e.kept[n-1]
	}
	e.readRemovals(dir, key)
	return e
}

// readKept reads the kept checkpoints and checks that they are complete: each contains the
// digest of its predecessor. So the signature of the last one covers all of them; the
// signature of another one is only checked if its successor does not refer to it.
func (e *evidence) readKept(history []byte, key verifyingKey) {
	notes, rest := keptNotes(history)
	line := 1 // at which the note begins
	find := func(text string) {
		e.findings = append(e.findings, Finding{File: historyFile, Line: line, Text: text})
	}
	var before *checkpoint
	e.kept = make([]checkpoint, 0, len(notes))
	for i, c := range readNotes(notes, key) {
		if i > 0 {
			line += linesOf(notes[i-1])
		}
		if c.signed == nil {
			find("a kept checkpoint is damaged or forged")
			before = nil
			continue
		}
		e.kept = append(e.kept, c)
		switch follows := before == nil || c.size > before.size; {
		case c.legacy != "" && follows && (before == nil || before.legacy != ""):
		case c.legacy == "" && follows && c.kept == uint64(i) &&
			(before == nil && i > 0 || c.keptHash == digestOf(before)):
		default:
			find("a kept checkpoint does not follow the one before it: some were removed, doubled or moved")
		}
		before = &e.kept[len(e.kept)-1]
	}
	if len(rest) == 0 {
		return
	}
	e.rest = int64(len(rest))
	// A process that is killed while it writes a checkpoint leaves the beginning of it. The
	// same checkpoint is the head.
	if e.head == nil || !bytes.HasPrefix(append(bytes.Clone(e.head.signed), '\n'), rest) {
		if len(notes) > 0 {
			line += linesOf(notes[len(notes)-1])
		}
		find("the kept checkpoints end in something else")
	}
}

// linesOf returns the number of lines of a kept note, with the empty line behind it.
func linesOf(note []byte) int { return bytes.Count(note, []byte("\n")) + 1 }

// readNotes returns the checkpoints of notes; one without a valid signature, its own or
// that of the one behind it, is empty.
func readNotes(notes [][]byte, key verifyingKey) []checkpoint {
	list := make([]checkpoint, len(notes))
	for i := len(notes) - 1; i >= 0; i-- {
		c, err := readCheckpoint(notes[i])
		named := i+1 < len(list) && list[i+1].signed != nil && list[i+1].legacy == "" &&
			list[i+1].keptHash == c.digest()
		if err != nil || !named {
			c, err = openCheckpoint(notes[i], key)
		}
		if err == nil {
			list[i] = c
		}
	}
	return list
}

func digestOf(c *checkpoint) tlog.Hash {
	if c == nil {
		return tlog.Hash{}
	}
	return c.digest()
}

// checkHead compares the head with the kept checkpoints and the position.
func (e *evidence) checkHead() {
	if e.head == nil {
		return
	}
	find := func(file, text string) { e.findings = append(e.findings, Finding{File: file, Text: text}) }
	state := e.keptState()
	switch last := len(e.kept) - 1; {
	case e.head.legacy != "" && (last < 0 || e.kept[last].legacy != ""):
	case e.head.legacy != "":
		find(headFile, "the signed head was put back to one of an earlier format")
	case e.head.kept == state.count && e.head.keptHash == state.digest && e.head.size >= state.size:
	case last >= 0 && bytes.Equal(e.head.signed, e.kept[last].signed): // killed before the head named it
	case e.head.kept > state.count:
		find(historyFile, fmt.Sprintf("the last of %d kept checkpoints are missing", e.head.kept))
	default:
		find(headFile, "the signed head was put back: a checkpoint that was kept later is not in it")
	}
	e.checkpoints(func(file string, c *checkpoint) {
		if c.legacy == "" && c.origin != e.head.origin && e.head.legacy == "" {
			find(file, fmt.Sprintf("the checkpoint of record %d is of another log", c.size))
		}
	})
	p := e.position
	switch {
	case p == nil:
	case e.head.legacy != "" && p.durable.seq > 0:
		find(headFile, "the signed head was put back to one of an earlier format")
	case e.head.legacy == "" && p.origin != e.head.origin:
		find(headFile, "it is another log than the one that was here before")
	case p.durable.seq > e.head.size && (p.sameBoot() || p.durable.seq-e.head.size > maxUnsigned):
		find(headFile, fmt.Sprintf("the signed head was put back: it names record %d, and record %d was signed",
			e.head.size, p.durable.seq))
	case p.durable.seq > e.head.size:
		e.remarks = append(e.remarks, fmt.Sprintf(
			"the signed head names record %d, though record %d was signed: the machine was started anew between, or "+
				"it was put back", e.head.size, p.durable.seq))
	}
}

// facts are what was found in the files of a log.
type facts struct {
	first  uint64 // number of the first record
	last   mark
	torn   int64 // bytes behind the last whole record
	hashes map[uint64]string
	roots  map[uint64]tlog.Hash
}

// compare compares the log with the evidence.
func (e *evidence) compare(f *facts) (findings []Finding, remarks []string) {
	find := func(seq uint64, text string, values ...any) {
		findings = append(findings, Finding{headFile, 0, seq, fmt.Sprintf(text, values...)})
	}
	signed := uint64(0)
	if e.position != nil {
		signed = e.position.durable.seq
		if text := e.position.mismatch(f); text != "" {
			find(min(max(signed, 1), f.last.seq+1), "%s", text)
		}
	}
	e.checkpoints(func(file string, c *checkpoint) {
		signed = max(signed, c.size)
		if len(findings) > 0 || c.size > f.last.seq {
			return
		}
		hash, known := f.hashes[c.size]
		root, computed := f.roots[c.size]
		if c.legacy != "" && known && hash != c.legacy || c.legacy == "" && computed && root != c.root {
			find(c.size, "the records up to this one are not those that were signed (%s)", file)
		}
	})
	if signed > f.last.seq {
		findings = append([]Finding{{headFile, 0, f.last.seq + 1,
			fmt.Sprintf("records %d to %d are missing: they were signed", f.last.seq+1, signed)}}, findings...)
	}
	if e.copied {
		if f.last.seq > signed {
			remarks = append(remarks, fmt.Sprintf("records %d to %d have no checkpoint yet", signed+1, f.last.seq))
		}
		return findings, remarks
	}
	if f.last.seq > signed+maxUnsigned {
		find(signed+1, "records %d to %d are not signed: more than an Airlock that is killed leaves", signed+1,
			f.last.seq)
	} else if p := e.position; f.last.seq > signed && (p == nil || !p.sameBoot()) {
		remarks = append(remarks,
			fmt.Sprintf("records %d to %d are not signed: left by an Airlock that ended with its machine, or added",
				signed+1, f.last.seq))
	}
	if f.torn > 0 {
		text := fmt.Sprintf("it ends in %d bytes that are not a whole record", f.torn)
		if p := e.position; p != nil && p.sameBoot() && !p.interrupted(f.last) {
			find(f.last.seq+1, "%s, and no Airlock was writing", text)
		} else {
			remarks = append(remarks, text+": left by an Airlock that was killed while it wrote, or added")
		}
	}
	return findings, remarks
}

// mismatch describes how a log differs from its position, or returns "".
func (p *position) mismatch(f *facts) string {
	if hash, known := f.hashes[p.durable.seq]; known && hash != p.durable.hash {
		return "it is not the record that was signed"
	}
	if !p.sameBoot() || f.last.seq < p.durable.seq || p.endsAt(f.last) {
		return ""
	}
	end := p.base.seq + uint64(len(p.pending))
	switch {
	case f.last.seq > end:
		return fmt.Sprintf("records %d to %d are not signed, and were not written by Airlock", end+1, f.last.seq)
	case f.last.seq < p.base.seq:
		return fmt.Sprintf("records %d to %d are missing: they were written", f.last.seq+1, p.base.seq)
	}
	return fmt.Sprintf("record %d is not signed, and not as an Airlock wrote it", f.last.seq)
}
