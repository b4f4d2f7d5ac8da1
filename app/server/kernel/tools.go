package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// read decodes arguments that fit their schema.
func read(arguments json.RawMessage, into any) error {
	if err := strictjson.UnmarshalOpen(arguments, into); err != nil {
		return &kernel.Refusal{Text: "Invalid arguments: " + err.Error()}
	}
	return nil
}

func (s *Server) verifyCodeSafety(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Code     string `json:"code"`
		Language string `json:"language"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return s.kernel.Judge(ctx, a, in.Code, in.Language)
}

func (s *Server) verifyClaim(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	in := struct {
		Claim     string   `json:"claim"`
		Context   string   `json:"context"`
		Models    []string `json:"models"`
		Threshold float64  `json:"threshold"`
	}{Threshold: kernel.DefaultThreshold}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return s.kernel.VerifyClaim(ctx, a, kernel.Claim{Text: in.Claim, Context: in.Context, Models: in.Models,
		Threshold: in.Threshold})
}

func (s *Server) reviewCode(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Code     string   `json:"code"`
		Language string   `json:"language"`
		Models   []string `json:"models"`
		Focus    []string `json:"focus"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return s.kernel.ReviewCode(ctx, a, kernel.Code{Text: in.Code, Language: in.Language, Models: in.Models,
		Focus: in.Focus})
}

func (s *Server) execute(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Action   string          `json:"action"`
		Params   json.RawMessage `json:"params"`
		Agent    string          `json:"agent_id"`
		Policies []string        `json:"policies"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	done, err := s.kernel.Execute(ctx, a, kernel.Request{Action: in.Action, Agent: in.Agent, Params: in.Params,
		Policies: in.Policies})
	if err == nil && done.Error != nil {
		return nil, &failure{done}
	}
	return done, err
}

// failure is the error of an action that was executed and failed.
type failure struct{ done kernel.Executed }

// Error returns the message of the failed action.
func (f *failure) Error() string { return f.done.Error.Message }

func (s *Server) sign(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Content      string          `json:"content"`
		Agent        string          `json:"agent_id"`
		Capabilities []string        `json:"capabilities"`
		Metadata     json.RawMessage `json:"metadata"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return s.kernel.Sign(ctx, a, in.Agent, iatp.Content{Text: in.Content, Capabilities: in.Capabilities,
		Metadata: in.Metadata})
}

func (s *Server) verifyAgent(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Agent          string          `json:"remote_agent_id"`
		Level          iatp.Level      `json:"required_trust_level"`
		Scopes         []string        `json:"required_scopes"`
		Classification string          `json:"data_classification"`
		Attestation    json.RawMessage `json:"attestation"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	q := iatp.Query{Agent: in.Agent, Level: in.Level, Scopes: in.Scopes, Classification: in.Classification}
	if len(in.Attestation) > 0 {
		q.Attestation = &iatp.Envelope{}
		if strictjson.UnmarshalOpen(in.Attestation, q.Attestation) != nil {
			*q.Attestation = iatp.Envelope{} // Only envelopes are signed.
		}
	}
	return s.kernel.Verify(ctx, a, q)
}

func (s *Server) reputation(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Action   string          `json:"action"`
		Agent    string          `json:"agent_id"`
		Reason   string          `json:"slash_reason"`
		Severity string          `json:"slash_severity"`
		Evidence json.RawMessage `json:"evidence"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	if in.Action == "query" {
		return s.kernel.Reputation(ctx, a, in.Agent)
	}
	return s.kernel.Slash(ctx, a, iatp.Slash{Agent: in.Agent, Reason: in.Reason, Severity: in.Severity,
		Evidence: in.Evidence})
}

func (s *Server) auditLog(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error) {
	var in struct {
		Limit  *float64 `json:"limit"`
		Filter struct {
			Agent  string `json:"agent_id"`
			Type   string `json:"type"`
			Since  string `json:"since"`
			Before uint64 `json:"before"`
		} `json:"filter"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	q := kernel.LogQuery{Limit: kernel.DefaultEntries, Agent: in.Filter.Agent, Type: in.Filter.Type,
		Before: in.Filter.Before}
	if in.Limit != nil {
		q.Limit = int(*in.Limit) // fractions are truncated
	}
	var err error
	if in.Filter.Since != "" {
		if q.Since, err = parseTime(in.Filter.Since); err != nil {
			return nil, err
		}
	}
	return s.kernel.Log(ctx, a, q)
}

// parseTime parses an ISO 8601 timestamp: a date, or a date with a time. The default time zone is
// UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00",
		"2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02", "20060102T150405Z"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &kernel.Refusal{Text: fmt.Sprintf(
		"filter.since %.40q is not an ISO 8601 timestamp, such as 2026-01-31T12:00:00Z", text)}
}

// asFailure returns the action of a failure, and reports whether err is one.
func asFailure(err error) (kernel.Executed, bool) {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.done, true
	}
	return kernel.Executed{}, false
}
