package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentPrefix = "audit-"
	segmentSuffix = ".jsonl"
)

// segment is one file of the log. Its name carries the number of its first record.
type segment struct {
	path  string
	first uint64
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%012d%s", segmentPrefix, first, segmentSuffix))
}

// segments lists the files of a log, oldest first.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the audit log: %w", err)
	}
	var list []segment
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), segmentPrefix)
		digits, isSegment := strings.CutSuffix(digits, segmentSuffix)
		if !ok || !isSegment {
			continue
		}
		first, err := strconv.ParseUint(digits, 10, 53)
		if err != nil || segmentPath(dir, first) != filepath.Join(dir, entry.Name()) {
			return nil, fmt.Errorf("the audit log has a file %q that Airlock did not name", entry.Name())
		}
		list = append(list, segment{filepath.Join(dir, entry.Name()), first})
	}
	slices.SortFunc(list, func(a, b segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	return list, nil
}

// tail is where a segment ends.
type tail struct {
	size int64 // bytes up to and with the last newline
	torn int64 // bytes after it: the start of a record that was never finished
	last Record
	any  bool // whether there is a record
}

// readTail reads the last whole record of an open segment, starting no earlier
// than from, which must be the start of a line.
func readTail(f *os.File, from int64) (tail, error) {
	info, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	start := max(from, info.Size()-2*maxLine)
	text := make([]byte, info.Size()-start)
	if _, err := io.ReadFull(io.NewSectionReader(f, start, int64(len(text))), text); err != nil {
		return tail{}, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	t := tail{size: start + int64(end), torn: int64(len(text) - end)}
	if end == 0 {
		if start > from {
			return tail{}, errors.New("it ends in a line that is longer than any record")
		}
		return t, nil
	}
	begin := bytes.LastIndexByte(text[:end-1], '\n') + 1
	if t.last, err = open(text[begin : end-1]); err != nil {
		return tail{}, fmt.Errorf("its last record is damaged: %w", err)
	}
	t.any = true
	return t, nil
}

// tornBytes returns how many bytes stand after the last newline of a file.
func tornBytes(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	text := make([]byte, min(info.Size(), 2*maxLine))
	if _, err := f.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return 0, err
	}
	return int64(len(text) - bytes.LastIndexByte(text, '\n') - 1), nil
}
