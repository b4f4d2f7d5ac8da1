package broker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// callServer calls the server.
func (a *attempt) callServer(ctx context.Context) *failure {
	limits := a.run.limits
	timeout, limit := limits.TimeoutOf(a.tool.ServerID)
	if a.run.opts.Keep != nil {
		ctx = upstream.AllowLarge(ctx, limits.LargeResultBytes)
	}
	deadline, pausable, cancel := upstream.WithPausableTimeout(ctx, timeout)
	defer cancel()
	deadline, task := upstream.NoteTask(deadline)
	result, err := a.callUpstream(deadline)
	again, fail := a.signedIn(deadline, pausable, err)
	if again {
		result, err = a.callUpstream(deadline)
	}
	a.taskID = task.ID()
	switch {
	case err != nil && ctx.Err() != nil:
		return failf(errortype.Killed, "the run ended before the server answered").because(err)
	case fail != nil:
		return fail
	case err != nil && upstream.TimedOut(deadline):
		return exceeded(limit, errortype.Timeout, "the server did not answer within %v; ask for less, or try again",
			timeout).because(err).retryable()
	case err != nil:
		return upstreamFailure(err)
	case int64(len(result)) > a.mostBytes():
		return tooLarge(result, a.mostBytes())
	}
	a.result = result
	if !a.isLarge() {
		return nil
	}
	return a.takeTurn(ctx)
}

func tooLarge(result json.RawMessage, most int64) *failure {
	return exceeded(admission.LimitResultBytes, errortype.Output,
		"the result has %d bytes, more than the %d that one call may return; %s", len(result), most,
		upstream.AskForLess)
}

// toolResult contains the members of a CallToolResult that the broker reads (MCP 2025-11-25, Schema
// Reference). The code gets the whole result.
type toolResult struct {
	content           json.RawMessage
	structuredContent json.RawMessage
	isError           bool
}

var errNoResult = errors.New("not a CallToolResult")

// parseResult reads the members by their exact names, and of duplicate names the last one, as JSON
// decoders in Python and JavaScript do. Decoding into a struct would accept "StructuredContent" for
// structuredContent, so the checked value could differ from the value that the code reads.
func parseResult(raw json.RawMessage) (toolResult, error) {
	var read struct{ content, structuredContent, isError json.RawMessage }
	if !json.Valid(raw) || !strictjson.EachMember(raw, canon.MaxDepth-1, func(name, value []byte) bool {
		switch string(name) {
		case "content":
			read.content = value
		case "structuredContent":
			read.structuredContent = value
		case "isError":
			read.isError = value
		}
		return true
	}) {
		var all map[string]json.RawMessage
		if err := strictjson.UnmarshalOpen(raw, &all); err != nil || all == nil {
			return toolResult{}, errNoResult
		}
		read.content, read.structuredContent, read.isError = all["content"], all["structuredContent"], all["isError"]
	}
	if len(read.content) > 0 && read.content[0] != '[' && string(read.content) != "null" {
		return toolResult{}, errNoResult
	}
	r := toolResult{content: read.content, structuredContent: read.structuredContent}
	if flag := read.isError; flag != nil {
		if err := strictjson.UnmarshalOpen(flag, &r.isError); err != nil {
			return toolResult{}, errNoResult
		}
	}
	return r, nil
}

// validateOutput checks the result against the outputSchema published by the server. A failure
// reported by the tool has no structured result to check.
func (a *attempt) validateOutput(context.Context) *failure {
	switch {
	case a.tool.Use == "" && a.tool.IsApp():
		return a.deliverApp()
	case a.tool.IsRead():
		return a.validateRead()
	}
	r, err := parseResult(a.result)
	if err != nil {
		return failf(errortype.OutputValidation, "the server answered with something other than a tool result").because(
			err)
	}
	a.isError = r.isError
	if r.isError || len(a.tool.OutputSchema) == 0 {
		return nil
	}
	if len(r.structuredContent) == 0 || bytes.Equal(r.structuredContent, []byte("null")) {
		return failf(errortype.OutputValidation, "the tool promises a structured result and returned none")
	}
	check, err := a.broker.outputs.Get(a.tool.Digest, a.tool.OutputSchema)
	if err == nil {
		err = check.Validate(r.structuredContent)
	}
	var problems *schema.Problems
	switch {
	case errors.As(err, &problems):
		return failf(errortype.OutputValidation, "the result does not fit the tool's output schema: %v", problems)
	case err != nil:
		return failf(errortype.OutputValidation, "the result cannot be checked against the tool's output schema: %v",
			err)
	}
	return nil
}

// validateRead checks the result of reading a resource, getting a prompt or completing an argument (MCP 2025-11-25,
// Schema Reference, ReadResourceResult, GetPromptResult and CompleteResult). The result of a subscription is empty.
func (a *attempt) validateRead() *failure {
	var result map[string]json.RawMessage
	var items []map[string]json.RawMessage
	var completion struct {
		Values []string `json:"values"`
	}
	err := strictjson.UnmarshalOpen(a.result, &result)
	switch {
	case err != nil || a.tool.Use == catalog.UseSubscribe:
	case a.tool.Use == catalog.UseComplete:
		if err = strictjson.UnmarshalOpen(result["completion"], &completion); err == nil && completion.Values == nil {
			err = errNoResult
		}
	default:
		member := "contents"
		if a.tool.Kind == catalog.KindPrompt {
			member = "messages"
		}
		if err = strictjson.UnmarshalOpen(result[member], &items); err == nil && items == nil {
			err = errNoResult
		}
	}
	if err != nil {
		return failf(errortype.OutputValidation, "the server answered with something that is not a %s",
			cmp.Or(string(a.tool.Use), string(a.tool.Kind))).because(err)
	}
	return nil
}

// deliverApp checks that an app is what was listed, and keeps what the operator grants of its content security policy.
func (a *attempt) deliverApp() *failure {
	delivered, note, err := a.tool.DeliverApp(a.result, a.rules.Operator[a.tool.ServerID].Apps)
	if errors.Is(err, catalog.ErrAppChanged) {
		f := failf(errortype.PolicyDenied, "%s", err)
		f.detail = err.Error()
		return f
	}
	if err != nil {
		return failf(errortype.OutputValidation, "the app %s cannot be shown: %v", catalog.Quote(a.tool.Identifier()),
			err)
	}
	a.result, a.note = delivered, note
	return nil
}

// redact removes every credential that Airlock holds from data for the sandbox. Other secrets and
// personal data are kept, because the code may need them; they are removed from results that leave
// the sandbox (docs/design/0005-where-results-are-redacted.md).
func (a *attempt) redact(context.Context) *failure {
	// counted before the search, so that a credential added later increases the number
	a.held = a.run.opts.Redactor.HeldCount()
	cleaned, found, err := a.run.opts.Redactor.HeldJSON(a.result)
	if errors.Is(err, canon.ErrDeep) {
		return failf(errortype.OutputValidation,
			"the server answered with JSON that is nested more than %d levels deep", canon.MaxDepth)
	}
	if err != nil {
		return failf(errortype.OutputValidation, "the server answered with something other than JSON").because(err)
	}
	// the replacement of a credential can be longer
	if int64(len(cleaned)) > a.mostBytes() {
		return tooLarge(cleaned, a.mostBytes())
	}
	cleaned, repeated, err := a.run.withoutTyped(cleaned)
	if err != nil {
		return failf(errortype.OutputValidation, "the server answered with something other than JSON").because(err)
	}
	found = append(found, repeated...)
	a.run.opts.Redactor.Learn(a.call.ServerID, cleaned)
	a.result, a.removed = cleaned, found
	return nil
}

// toolFailure returns a tool's own failure with the tool's message. The result is part of the
// answer.
func (a *attempt) toolFailure(context.Context) *failure {
	if !a.isError {
		return nil
	}
	f := failf(errortype.Tool, "%s", failureText(a.result))
	f.Source = errortype.SourceTool
	return f
}

// failureText joins the text blocks of a failed tool's result.
func failureText(result json.RawMessage) string {
	const most = 4 << 10
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	r, err := parseResult(result)
	if err != nil || strictjson.UnmarshalOpen(r.content, &blocks) != nil {
		return noText
	}
	var parts []string
	for _, block := range blocks {
		if block.Type == "text" && block.Text != "" {
			parts = append(parts, block.Text)
		}
	}
	text := strings.Join(parts, "\n")
	if text == "" {
		return noText
	}
	return truncate.Bytes(text, most)
}

const noText = "the tool failed and did not say why"

func compact(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	err := json.Compact(&out, raw)
	return out.Bytes(), err
}
