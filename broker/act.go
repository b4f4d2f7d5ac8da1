package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/internal/schema"
)

// act calls the server, at last.
func (a *attempt) act(ctx context.Context) *failure {
	limits := a.broker.opts.Limits
	deadline, cancel := context.WithTimeout(ctx, limits.CallTimeout)
	defer cancel()
	result, err := a.broker.upstream.Call(deadline, a.tool.ServerID, a.tool.Name, a.arguments)
	switch {
	case err != nil && ctx.Err() != nil:
		return failf(typeKilled, "the run ended before the server answered").because(err)
	case err != nil && errors.Is(deadline.Err(), context.DeadlineExceeded):
		return failf(typeTimeout, "the server did not answer within %v; ask for less, or try again", limits.CallTimeout).because(err).retryable()
	case err != nil:
		f := upstreamFailure(err)
		message, found := a.broker.opts.Redactor.Held([]byte(f.Message))
		f.Message, a.removed = string(message), found
		return f
	case int64(len(result)) > limits.ResultBytes:
		return failf(typeOutputLimit, "the result has %d bytes, more than the %d that one call may return; ask the tool for less", len(result), limits.ResultBytes)
	}
	a.result = result
	a.session.facts.answered(a.tool.ServerID)
	return nil
}

// toolResult is what the broker reads of a CallToolResult (MCP 2025-11-25,
// Schema Reference). The code gets the whole.
type toolResult struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

// validateOutput holds the server to the outputSchema that it published. A
// failure that the tool reports itself has no structured result to check.
func (a *attempt) validateOutput(context.Context) *failure {
	var r toolResult
	if err := json.Unmarshal(a.result, &r); err != nil {
		return failf(typeOutputValidation, "the server answered with something that is no tool result").because(errors.New("not a CallToolResult"))
	}
	if r.IsError || len(a.tool.OutputSchema) == 0 {
		return nil
	}
	if len(r.StructuredContent) == 0 || bytes.Equal(r.StructuredContent, []byte("null")) {
		return failf(typeOutputValidation, "the tool promises a structured result and returned none")
	}
	check, err := a.broker.outputs.Get(a.tool.Digest, a.tool.OutputSchema)
	if err == nil {
		err = check.Validate(r.StructuredContent)
	}
	var problems *schema.Problems
	switch {
	case errors.As(err, &problems):
		return failf(typeOutputValidation, "the result does not fit the tool's output schema: %v", problems)
	case err != nil:
		return failf(typeOutputValidation, "the result cannot be checked against the tool's output schema: %v", err)
	}
	return nil
}

// redact removes every credential that Airlock holds from what goes into the
// sandbox. Other people's secrets and data stay: working with them is what the
// code is for, and they are removed where results leave the sandbox
// (docs/design/0005-where-results-are-redacted.md).
func (a *attempt) redact(context.Context) *failure {
	cleaned, found, err := a.broker.opts.Redactor.HeldJSON(a.result)
	if err != nil {
		return failf(typeOutputValidation, "the server answered with something that is no JSON").because(err)
	}
	a.result, a.removed = cleaned, found
	a.session.account(a.callKey(), a.result, redact.Counts(found))
	var r toolResult
	if err := json.Unmarshal(a.result, &r); err != nil || !r.IsError {
		return nil
	}
	f := failf(typeTool, "%s", r.text())
	f.Source = sourceTool
	return f
}

// text joins the text blocks of a failed tool's result: its own words.
func (r toolResult) text() string {
	const most = 4 << 10
	var parts []string
	for _, block := range r.Content {
		if block.Type == "text" && block.Text != "" {
			parts = append(parts, block.Text)
		}
	}
	text := strings.Join(parts, "\n")
	switch {
	case text == "":
		return "the tool failed and did not say why"
	case len(text) > most:
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func compact(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	err := json.Compact(&out, raw)
	return out.Bytes(), err
}
