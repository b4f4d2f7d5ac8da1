package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// genesis is what the first record of a log names as the one before it.
var genesis = "sha256:" + strings.Repeat("0", 64)

// maxLine is the most bytes of one record. Clear arguments that would make a
// longer one are left out.
const maxLine = 1 << 20

// emptyHash is the member as it stands in the canonical text before the hash
// is known. Every member after it in RFC 8785's order is a string, a number or
// a map of numbers, so the last place with these bytes is the record's own.
const emptyHash = `"hash":"",`

// hashMember begins the member of a sealed line, in the last place of the line
// for the same reason: within a string its quotes would be escaped.
const hashMember = `"hash":"`

// seal sets r.Hash and returns the record's line, newline included.
func seal(r *Record) ([]byte, error) {
	r.Hash = ""
	text, err := canon.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a record: %w", err)
	}
	at := bytes.LastIndex(text, []byte(emptyHash))
	if at < 0 {
		return nil, errors.New("encoding a record: it has no place for its hash")
	}
	before, after := text[:at], text[at+len(emptyHash):]
	r.Hash = canon.Digest(bytes.Join([][]byte{before, after}, nil))
	line := fmt.Appendf(make([]byte, 0, len(text)+80), `%s"hash":"%s",%s`, before, r.Hash, after)
	if len(line) >= maxLine {
		return nil, fmt.Errorf("encoding a record: it has %d bytes, more than %d", len(line), maxLine)
	}
	return append(line, '\n'), nil
}

// open reads one line without its newline, and proves that it is exactly what
// seal wrote: any changed bit is an error.
func open(line []byte) (Record, error) {
	var r Record
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return Record{}, errors.New("it is not a record")
	}
	claimed := r.Hash
	again, err := seal(&r)
	if err != nil {
		return Record{}, err
	}
	if r.Hash != claimed || !bytes.Equal(again[:len(again)-1], line) {
		return Record{}, errors.New("its hash does not fit its contents")
	}
	return r, nil
}

// claimedHash is the hash that a line says it has, without proof.
func claimedHash(line []byte) string {
	at := bytes.LastIndex(line, []byte(hashMember))
	if at < 0 {
		return ""
	}
	hash, _, _ := bytes.Cut(line[at+len(hashMember):], []byte(`"`))
	return string(hash)
}
