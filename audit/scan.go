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
// passed over on the way to them does not count for limit.
func ScanBefore(dir string, before uint64, limit int64, words []string,
	visit func(b Brief, record func() (Record, error)) (more bool, err error)) (whole bool, err error) {
	list, err := segments(dir)
	if err != nil {
		return false, err
	}
	var read int64
	more := true
	mentioned := func(text []byte) bool {
		return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
	}
	wanted := func(lines []byte) bool {
		if size := int64(len(lines)); before == 0 && read+size <= limit && !mentioned(lines) {
			read += size
			return false
		}
		return before == 0 || mentioned(lines)
	}
	for i, s := range slices.Backward(list) {
		if before > 0 && s.first >= before {
			continue
		}
		if before > 0 && i+1 < len(list) && list[i+1].first < before {
			before = 0 // an earlier segment has only records below it
		}
		err := eachLineBackward(s.path, wanted, func(line []byte) (bool, error) {
			if before > 0 {
				var at struct {
					Seq uint64 `json:"seq"`
				}
				if strictjson.UnmarshalOpen(line, &at) != nil {
					return false, errNoRecord
				}
				if at.Seq >= before {
					return true, nil
				}
				before = 0
			}
			if read += int64(len(line)) + 1; read > limit {
				more = false
			}
			if !more || !mentioned(line) {
				return more, nil
			}
			var b Brief
			if strictjson.UnmarshalOpen(line, &b) != nil {
				return false, errNoRecord
			}
			more, err = visit(b, func() (Record, error) { return open(line) })
			return more, err
		})
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}
