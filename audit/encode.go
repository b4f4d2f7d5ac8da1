package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
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
	e.value("arguments", r.Arguments, len(r.Arguments))
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
	e.value("delegation", r.Delegation, len(r.Delegation))
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
	e.value("limits", r.Limits, len(r.Limits))
	e.string("model", r.Model)
	e.string("outcome", r.Outcome)
	e.string("output_digest", r.OutputDigest)
	e.string("parent_id", r.ParentID)
	e.value("policies", r.Policies, len(r.Policies))
	e.string("policy_version", r.PolicyVersion)
	e.must("prev", r.Prev)
	e.string("principal", r.Principal)
	e.string("profile", r.Profile)
	e.value("redactions", r.Redactions, len(r.Redactions))
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
	e.text = strictjson.AppendString(e.text, value)
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

// value writes a value of several parts; size is how many it has.
func (e *canonicalText) value(name string, value any, size int) {
	if size == 0 {
		return
	}
	e.name(name)
	text, err := canon.Marshal(value)
	e.err = errors.Join(e.err, err)
	e.text = append(e.text, text...)
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
