package audit

import (
	"bytes"
	"errors"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// genesis is what the first record of a log names as the one before it.
var genesis = "sha256:" + strings.Repeat("0", 64)

// maxLine is the most bytes of one record. Clear arguments that would make a
// longer one are left out.
const maxLine = 1 << 20

// hashMember is the start of the member with a line's hash. It is the last occurrence of these
// bytes in a line: every later member in RFC 8785's order is a string, in which quotes are
// escaped, a number, or a map without a string member of that name.
const hashMember = `"hash":"`

// open reads one line without its newline, and proves that it is exactly what
// seal wrote: any changed bit is an error.
func open(line []byte) (Record, error) {
	var r Record
	if err := strictjson.Unmarshal(line, &r); err != nil {
		return Record{}, errors.New("it is not a record")
	}
	claimed := r.Hash
	again, err := seal(make([]byte, 0, len(line)+1), &r)
	if err != nil {
		return Record{}, err
	}
	if r.Hash != claimed || !bytes.Equal(again[:len(again)-1], line) {
		return Record{}, errors.New("its hash does not fit its contents")
	}
	return r, nil
}

// claimedHash returns the hash stated in a line, unverified.
func claimedHash(line []byte) string {
	at := bytes.LastIndex(line, []byte(hashMember))
	if at < 0 {
		return ""
	}
	hash, _, _ := bytes.Cut(line[at+len(hashMember):], []byte(`"`))
	return string(hash)
}
