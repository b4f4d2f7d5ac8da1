package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// each calls visit for the records that have the word in their line, from the
// segment that holds the numbered one on, oldest first. Each is proven to be as
// it was written. A half-written last line is not a record.
func each(dir string, from uint64, word string, visit func(Record) error) error {
	list, err := segments(dir)
	if err != nil {
		return err
	}
	for i, s := range list {
		if i+1 < len(list) && list[i+1].first <= from {
			continue
		}
		err := eachLine(s.path, 0, func(n int, line []byte) error {
			if !bytes.Contains(line, []byte(word)) {
				return nil
			}
			r, err := open(line)
			if err != nil {
				return fmt.Errorf("%s line %d: %w", s.path, n, err)
			}
			return visit(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// RecordsOf calls visit for the records of a run in whole lines of a log, in their order, with the sizes of their
// lines. Each is proven to be as it was written.
func RecordsOf(lines []byte, runID string, visit func(r Record, size int) error) error {
	member := []byte(`"run_id":"` + runID + `"`)
	for line := range bytes.Lines(lines) {
		if !bytes.Contains(line, member) {
			continue
		}
		r, err := open(bytes.TrimSuffix(line, []byte("\n")))
		if err == nil && r.RunID == runID { // else the run is in the arguments of a call
			err = visit(r, len(line))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachLine calls visit with the number and the text of each whole line that
// begins at or after the byte from; the first is number 1.
func eachLine(path string, from int64, visit func(n int, line []byte) error) error {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	return eachLineOf(f, from, visit)
}

// eachLineOf is eachLine of an open file.
func eachLineOf(f *os.File, from int64, visit func(n int, line []byte) error) error {
	path := f.Name()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	in := bufio.NewReaderSize(f, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s line %d: it is longer than any record", path, n)
		case err != nil:
			return fmt.Errorf("reading the audit log: %w", err)
		}
		if err := visit(n, line[:len(line)-1]); err != nil {
			return err
		}
	}
}
