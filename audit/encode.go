package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// maxExact is the largest whole number that RFC 8785 writes with all its digits.
const maxExact = 1 << 53

// canonicalText writes a record in the canonical form of RFC 8785: members in the
// order of their names, without those that are empty.
type canonicalText struct {
	text  []byte
	first bool
	err   error
}

// encode appends the canonical form of a record without its hash, and returns the offset
// for the hash.
func encode(text []byte, r *Record) (_ []byte, at int, err error) {
	e := canonicalText{text: append(text, '{'), first: true}
	e.string("address", r.Address)
	e.string("approval", r.Approval)
	e.string("approval_state", r.ApprovalState)
	e.string("approver", r.Approver)
	e.raw("arguments", r.Arguments)
	e.string("arguments_hash", r.ArgumentsHash)
	e.number("bytes_received", r.BytesReceived)
	e.number("bytes_sent", r.BytesSent)
	e.string("call_id", r.CallID)
	e.string("caller_kind", r.CallerKind)
	e.number("calls", int64(r.Calls))
	e.string("code_hash", r.CodeHash)
	e.string("cost_usd", r.CostUSD)
	e.string("debit_id", r.DebitID)
	e.string("decision", r.Decision)
	e.string("definition_digest", r.DefinitionDigest)
	e.raw("delegation", r.Delegation)
	e.string("detail", r.Detail)
	e.flag("durable", r.Durable)
	e.number("duration_ms", r.DurationMS)
	e.string("engine", r.Engine)
	e.string("error_source", r.ErrorSource)
	e.string("error_type", r.ErrorType)
	at = len(e.text)
	e.string("host", r.Host)
	e.string("image", r.Image)
	e.string("input_digest", r.InputDigest)
	e.string("issuer", r.Issuer)
	e.must("kind", string(r.Kind))
	e.string("language", r.Language)
	e.string("limit", r.Limit)
	e.texts("limits", r.Limits)
	e.string("model", r.Model)
	e.string("outcome", r.Outcome)
	e.string("output_digest", r.OutputDigest)
	e.string("parent_id", r.ParentID)
	e.list("policies", r.Policies)
	e.string("policy_version", r.PolicyVersion)
	e.must("prev", r.Prev)
	e.string("principal", r.Principal)
	e.string("profile", r.Profile)
	e.counts("redactions", r.Redactions)
	e.string("result_hash", r.ResultHash)
	e.number("result_size", r.ResultSize)
	e.string("risk", r.Risk)
	e.string("run_id", r.RunID)
	e.name("seq")
	e.integer(int64(r.Seq))
	e.string("server_id", r.ServerID)
	e.string("session_id", r.SessionID)
	e.string("snapshot", r.Snapshot)
	e.number("suspension", int64(r.Suspension))
	e.string("task_id", r.TaskID)
	e.must("time", r.Time)
	e.string("tool_name", r.ToolName)
	e.string("trace_id", r.TraceID)
	e.string("verdict", r.Verdict)
	e.string("verification_id", r.VerificationID)
	e.must("writer", r.Writer)
	return append(e.text, '}'), at, e.err
}

// Text returns the record as a line of the log has it, without its hash. Its number, its time and its
// writer are those that the record has, which may be none.
func (r Record) Text() ([]byte, error) {
	text, _, err := encode(nil, &r)
	return text, err
}

func (e *canonicalText) name(name string) {
	if !e.first {
		e.text = append(e.text, ',')
	}
	e.first = false
	e.text = append(append(append(e.text, '"'), name...), `":`...)
}

func (e *canonicalText) string(name, value string) {
	if value != "" {
		e.must(name, value)
	}
}

func (e *canonicalText) must(name, value string) {
	e.name(name)
	e.text = appendString(e.text, value)
}

func (e *canonicalText) flag(name string, value bool) {
	if value {
		e.name(name)
		e.text = append(e.text, "true"...)
	}
}

func (e *canonicalText) number(name string, n int64) {
	if n != 0 {
		e.name(name)
		e.integer(n)
	}
}

func (e *canonicalText) integer(n int64) {
	if n > maxExact || n < -maxExact {
		e.err = errors.Join(e.err, fmt.Errorf("the number %d has more digits than a record can hold", n))
	}
	e.text = strconv.AppendInt(e.text, n, 10)
}

func (e *canonicalText) raw(name string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	e.name(name)
	// In an array, because the canonical form is made of objects and arrays only.
	text, err := canon.JSON(slices.Concat([]byte{'['}, value, []byte{']'}))
	if err != nil {
		e.err = errors.Join(e.err, err)
		return
	}
	e.text = append(e.text, text[1:len(text)-1]...)
}

func (e *canonicalText) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	e.name(name)
	e.text = append(e.text, '[')
	for i, v := range values {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		e.text = appendString(e.text, v)
	}
	e.text = append(e.text, ']')
}

func (e *canonicalText) texts(name string, values map[string]string) {
	writeMembers(e, name, values, func(v string) { e.text = appendString(e.text, v) })
}

func (e *canonicalText) counts(name string, values map[string]int) {
	writeMembers(e, name, values, func(n int) { e.integer(int64(n)) })
}

func writeMembers[V any](e *canonicalText, name string, values map[string]V, write func(V)) {
	if len(values) == 0 {
		return
	}
	e.name(name)
	e.text = append(e.text, '{')
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.SortFunc(names, canon.CompareNames)
	for i, name := range names {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		e.text = append(appendString(e.text, name), ':')
		write(values[name])
	}
	e.text = append(e.text, '}')
}

// appendString implements RFC 8785, 3.2.2.2. Invalid UTF-8 becomes U+FFFD, as in
// encoding/json.
func appendString(text []byte, s string) []byte {
	text = append(text, '"')
	begin := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			i++
			if c >= ' ' && c != '"' && c != '\\' {
				continue
			}
			text = appendEscape(append(text, s[begin:i-1]...), c)
			begin = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			text = append(append(text, s[begin:i]...), "\uFFFD"...)
			begin = i + size
		}
		i += size
	}
	return append(append(text, s[begin:]...), '"')
}

func appendEscape(text []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(text, '\\', c)
	case '\b':
		return append(text, `\b`...)
	case '\f':
		return append(text, `\f`...)
	case '\n':
		return append(text, `\n`...)
	case '\r':
		return append(text, `\r`...)
	case '\t':
		return append(text, `\t`...)
	}
	return fmt.Appendf(text, `\u%04x`, c)
}

// seal appends the record's line, newline included, and sets r.Hash.
func seal(text []byte, r *Record) ([]byte, error) {
	begin := len(text)
	text, at, err := encode(text, r)
	if err != nil {
		return nil, fmt.Errorf("encoding a record: %w", err)
	}
	sum := sha256.Sum256(text[begin:])
	r.Hash = "sha256:" + hex.EncodeToString(sum[:])
	member := hashMember + r.Hash + `",` // it is never the last member, because kind follows
	if at > begin+1 {
		member = `,` + hashMember + r.Hash + `"`
	}
	text = slices.Insert(text, at, []byte(member)...)
	if len(text)-begin >= maxLine {
		return nil, fmt.Errorf("encoding a record: it has %d bytes, more than %d", len(text)-begin, maxLine)
	}
	return append(text, '\n'), nil
}
