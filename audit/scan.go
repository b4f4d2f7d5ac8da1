package audit

import (
	"bytes"
	"errors"
	"slices"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Brief is the part of a record that is read without a proof of the rest.
type Brief struct {
	Seq       uint64 `json:"seq"`
	Time      string `json:"time"`
	Kind      Kind   `json:"kind"`
	Principal string `json:"principal"`
	ToolName  string `json:"tool_name"`
	Decision  string `json:"decision"`
	Outcome   string `json:"outcome"`
}

var errNoRecord = errors.New("a line of the audit log is not a record: airlock audit verify has details")

// Scan calls visit for the records whose line contains one of the words, the newest first,
// until it returns false. record verifies the record and returns all of it. Scan reads at
// most limit bytes of the log; whole is false if parts of it were not read.
func Scan(dir string, limit int64, words []string,
	visit func(b Brief, record func() (Record, error)) (more bool, err error)) (whole bool, err error) {
	return ScanBefore(dir, 0, limit, words, visit)
}

// ScanBefore is Scan for the records with a number below before, 0 for all. What is
// passed over on the way to them does not count for limit. Full files are read by their index if
// each word is an indexed member, such as `"principal":"ann"`: then only matching lines are read.
func ScanBefore(dir string, before uint64, limit int64, words []string,
	visit func(b Brief, record func() (Record, error)) (more bool, err error)) (whole bool, err error) {
	list, err := segments(dir)
	if err != nil {
		return false, err
	}
	s := scanner{before: before, limit: limit, words: words, visit: visit}
	for i, file := range slices.Backward(list) {
		if s.before > 0 && file.first >= s.before {
			continue
		}
		if s.before > 0 && i+1 < len(list) && list[i+1].first < s.before {
			s.before = 0 // an earlier segment has only records below it
		}
		more, err := s.segment(file, i+1 < len(list))
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// scanner is the state of one ScanBefore.
type scanner struct {
	before uint64 // 0 when all further records have lower numbers
	limit  int64
	read   int64
	words  []string
	visit  func(Brief, func() (Record, error)) (bool, error)
}

// segment visits the lines of one file, the last one first. more is false if the scan is over.
func (s *scanner) segment(file segment, full bool) (more bool, err error) {
	if full {
		if offsets, ok := lookup(file.path, s.words); ok {
			return eachLineAt(file.path, offsets, s.line)
		}
	}
	more = true
	err = eachLineBackward(file.path, s.wants, func(line []byte) (bool, error) {
		more, err = s.line(line)
		return more, err
	})
	return more, err
}

// mentions reports whether a text contains one of the words.
func (s *scanner) mentions(text []byte) bool {
	return slices.ContainsFunc(s.words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

// wants reports whether lines have to be looked at one by one, and counts them if not.
func (s *scanner) wants(lines []byte) bool {
	if size := int64(len(lines)); s.before == 0 && s.read+size <= s.limit && !s.mentions(lines) {
		s.read += size
		return false
	}
	return s.before == 0 || s.mentions(lines)
}

func (s *scanner) line(line []byte) (more bool, err error) {
	if s.before > 0 {
		var at struct {
			Seq uint64 `json:"seq"`
		}
		if strictjson.UnmarshalOpen(line, &at) != nil {
			return false, errNoRecord
		}
		if at.Seq >= s.before {
			return true, nil
		}
		s.before = 0
	}
	if s.read += int64(len(line)) + 1; s.read > s.limit {
		return false, nil
	}
	if !s.mentions(line) {
		return true, nil
	}
	var b Brief
	if strictjson.UnmarshalOpen(line, &b) != nil {
		return false, errNoRecord
	}
	return s.visit(b, func() (Record, error) { return open(line) })
}
