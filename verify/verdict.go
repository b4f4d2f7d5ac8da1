package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Bounds of a request and of its verdict.
const (
	// MaxArguments is how many bytes the arguments of a request may have.
	MaxArguments = 7 << 20
	// MaxDepth is how deep arguments and verdicts may be nested: Python's decoder
	// takes about a thousand levels.
	MaxDepth = 200

	maxEngine  = 64 // bytes of an engine's name
	maxVerdict = 4 << 20
	maxReason  = 2 << 10
)

var statuses = []Status{Verified, Error, Inconclusive, Blocked, Unknown, Simplified}

// check returns the verdict on a request that no engine need see, or nil.
func (r Request) check() *Verdict {
	arguments := r.arguments()
	var verdict Verdict
	switch {
	case r.Engine == "" || len(r.Engine) > maxEngine || strings.ContainsFunc(r.Engine, isOdd):
		verdict = decided(Unknown, truncate.Head(r.Engine, maxEngine),
			"the name of the engine is empty, too long, or has other characters than a-z, 0-9 and _", nil)
	case len(arguments) > MaxArguments:
		verdict = decided(Blocked, r.Engine, fmt.Sprintf(
			"the arguments have %d bytes, more than %d", len(arguments), MaxArguments), nil)
	case canon.IsDeeper(arguments, MaxDepth):
		verdict = decided(Blocked, r.Engine, fmt.Sprintf("the arguments are nested more than %d levels deep", MaxDepth),
			nil)
	case !utf8.Valid(arguments) || !json.Valid(arguments) || bytes.TrimLeft(arguments, " \t\r\n")[0] != '{':
		verdict = decided(Unknown, r.Engine, "the arguments are not a JSON object in UTF-8", nil)
	default:
		return nil
	}
	return &verdict
}

func isOdd(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' }

func (r Request) arguments() []byte {
	if len(r.Arguments) == 0 {
		return []byte("{}")
	}
	return r.Arguments
}

// text is a request that was checked, as the entry point of the engines reads it.
func (r Request) text() string {
	return `{"engine":"` + r.Engine + `","arguments":` + string(r.arguments()) + `}`
}

// parse parses the verdict of a sandbox's guest, which is untrusted: anything other than a
// valid verdict is INCONCLUSIVE. Members that depend on the status are derived here, and
// duplicate names are removed.
func parse(engine, text string) Verdict {
	if len(text) > maxVerdict {
		return inconclusive(engine, fmt.Sprintf("the engine's verdict is larger than %d bytes", maxVerdict), nil)
	}
	fields, err := parseFields(text)
	if err != nil {
		return inconclusive(engine, "the answer of the engine is not a verdict", nil)
	}
	var status Status
	var message, named string
	if strictjson.UnmarshalOpen(fields["status"], &status) != nil || !slices.Contains(statuses, status) ||
		strictjson.UnmarshalOpen(fields["message"], &message) != nil {
		return inconclusive(engine, "the answer of the engine is not a verdict", nil)
	}
	if strictjson.UnmarshalOpen(fields["engine"], &named) != nil || named == "" || len(named) > maxEngine {
		named = engine
	}
	if evidence := fields["evidence"]; len(evidence) == 0 || evidence[0] != '{' {
		fields["evidence"] = json.RawMessage("{}")
	}
	return build(status, named, truncate.Head(message, maxReason), fields)
}

var errNoVerdict = errors.New("no verdict")

func parseFields(text string) (map[string]json.RawMessage, error) {
	if canon.IsDeeper([]byte(text), MaxDepth) {
		return nil, errNoVerdict
	}
	canonical, err := canon.JSON([]byte(text)) // refuses names that appear twice
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := strictjson.UnmarshalOpen(canonical, &fields); err != nil || fields == nil {
		return nil, errNoVerdict
	}
	return fields, nil
}

// inconclusive is the host's own verdict on an engine that gave none.
func inconclusive(engine, reason string, evidence map[string]any) Verdict {
	return decided(Inconclusive, engine, reason, evidence)
}

// decided is a verdict of the host's own.
func decided(status Status, engine, reason string, evidence map[string]any) Verdict {
	if evidence == nil {
		evidence = map[string]any{}
	}
	return build(status, engine, reason, map[string]json.RawMessage{"evidence": encode(evidence)})
}

// build puts the fields that every verdict has beside an engine's own.
func build(status Status, engine, reason string, fields map[string]json.RawMessage) Verdict {
	verified := encode(status == Verified)
	maps.Copy(fields, map[string]json.RawMessage{
		"verified": verified, "is_valid": verified,
		"status": encode(status), "engine": encode(engine), "message": encode(reason),
	})
	return Verdict{Status: status, Engine: engine, Reason: reason, Body: encode(fields)}
}

// encode is for values that always have a JSON form.
func encode(v any) json.RawMessage {
	text, err := canon.Verbatim(v)
	if err != nil {
		panic(err) // texts, numbers and parts of a decoded value
	}
	return text
}
