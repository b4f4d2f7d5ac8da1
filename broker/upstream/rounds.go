package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxRounds is how often a server may ask for input before it answers a call.
const maxRounds = 10

// input is what a result asks for before there is an answer (MCP 2026-07-28, Multi
// Round-Trip Requests).
type input struct {
	required bool
	requests map[string]inputRequest
	state    json.RawMessage // to be sent back unchanged; may be nil
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// errNoInput is returned for a result that requires input without naming it.
var errNoInput = errors.New("the server asks for input in a way that MCP does not know")

// inputOf reads what a result asks for.
func inputOf(raw json.RawMessage) (input, error) {
	if !bytes.Contains(raw, []byte("input")) && !bytes.Contains(raw, []byte(`\u`)) {
		return input{}, nil // it cannot contain input_required, even with escapes
	}
	var result struct {
		Kind     json.RawMessage `json:"resultType"`
		Requests json.RawMessage `json:"inputRequests"`
		State    json.RawMessage `json:"requestState"`
	}
	var kind string
	if strictjson.UnmarshalOpen(raw, &result) != nil || strictjson.UnmarshalOpen(result.Kind, &kind) != nil ||
		kind != "input_required" {
		return input{}, nil
	}
	needs := input{required: true, state: result.State}
	if len(result.Requests) > 0 && strictjson.UnmarshalOpen(result.Requests, &needs.requests) != nil {
		return input{}, errNoInput
	}
	if len(needs.requests) == 0 && needs.state == nil {
		return input{}, errNoInput
	}
	return needs, nil
}

// refusalOf returns why a server's request is refused, or "".
func (s *server) refusalOf(method string) string {
	switch {
	case method == methodSampling:
		return "the tool wants an answer of a model; " + refusedSampling
	case method == methodListRoots:
		return "the tool wants the host's directories; " + refusedRoots
	case method != methodElicit:
		return "the tool asks for something that Airlock does not know"
	case !s.config.Elicitation:
		return "the tool wants to ask a person first; " + refusedElicit
	}
	return ""
}

// whyNot returns why a result's requests for input are refused if there is no person.
func (s *server) whyNot(needs input) string {
	for _, name := range slices.Sorted(maps.Keys(needs.requests)) {
		if why := s.refusalOf(needs.requests[name].Method); why != "" {
			return why
		}
	}
	return "the tool wants to ask a person or a model first, which Airlock does not let it"
}

// answers asks the person behind the exchange everything that a result asks for,
// one after the other, and returns the params of the next round. All or nothing is
// answered; an error may be shown to the caller.
func (s *server) answers(ctx context.Context, e *exchange, needs input) (map[string]json.RawMessage, error) {
	for _, want := range needs.requests {
		if why := s.refusalOf(want.Method); why != "" {
			return nil, errors.New(why)
		}
	}
	given := map[string]ElicitationAnswer{}
	for name, want := range needs.requests {
		var params elicitParams
		if err := strictjson.UnmarshalOpen(want.Params, &params); err != nil {
			return nil, errNoInput
		}
		answer, err := e.elicit(ctx, s.config.ID, params)
		if err != nil {
			return nil, errors.New("the tool wants to ask a person first, but " + err.Error())
		}
		given[name] = answer
	}
	members := map[string]json.RawMessage{}
	if len(given) > 0 {
		raw, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		members["inputResponses"] = raw
	}
	if needs.state != nil {
		members["requestState"] = needs.state
	}
	return members, nil
}
