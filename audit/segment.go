package audit

import (
	"bytes"
	"errors"
	"fmt"
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
	return filepath.Join(dir, segmentName(first))
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

// tornBytes returns how many bytes stand after the last newline of a file.
func tornBytes(path string) (int64, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	_, torn, err := wholeBytes(f)
	return torn, errors.Join(err, f.Close())
}

// unfinishedBytes returns the number of bytes after the last newline.
func unfinishedBytes(text []byte) int64 {
	return int64(len(text) - bytes.LastIndexByte(text, '\n') - 1)
}

// segmentName is the name of the file whose first record has the number.
func segmentName(first uint64) string {
	return fmt.Sprintf("%s%012d%s", segmentPrefix, first, segmentSuffix)
}
