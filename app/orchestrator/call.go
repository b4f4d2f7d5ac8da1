package orchestrator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// LanguageCall is the language of a run that is one call without code.
const LanguageCall = "call_tool"

// ToolCall is a run that is one call without code: no sandbox is needed for it. With the name of a resource or a prompt
// (catalog.FeatureName), the result is the ReadResourceResult or the GetPromptResult.
type ToolCall struct {
	ServerID  string          `json:"server"`
	Name      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // a JSON object
	// Host reports that the host makes the call itself, see broker.Call. The result of a tool is its CallToolResult.
	Host bool `json:"-"`
}

// isHostsTool reports whether a request is the call of a tool by the host itself.
func (r Request) isHostsTool() bool {
	return r.Call != nil && r.Call.Host && r.Call.kind() == catalog.KindTool
}

// kind returns the kind of what is called, or KindAbout if it is used in another way.
func (c *ToolCall) kind() catalog.Kind {
	use, feature := catalog.SplitUse(c.Name)
	kind, _ := catalog.SplitFeatureName(feature)
	if use != "" {
		return catalog.KindAbout
	}
	return kind
}

// CallRequest returns a request for one call without code. The call as JSON is shown to
// people and recorded in place of the code.
func CallRequest(call ToolCall) (Request, error) {
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	code, err := canon.Verbatim(call)
	if err != nil {
		return Request{}, &InputError{"the arguments are not JSON", "pass an object"}
	}
	return Request{Language: LanguageCall, Code: code, Call: &call}, nil
}

// runCall executes a run that is one call. The call takes the same path as calls of code, with
// the same rules, limits, questions, records and recording.
func (o *Orchestrator) runCall(ctx context.Context, req Request) (*Outcome, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	if err := o.parts.Broker.AwaitTurn(ctx, req.Caller); err != nil {
		return nil, err
	}
	r := newRun(plan{
		identity: broker.Run{
			ID: req.ID, Caller: req.Caller, TraceID: telemetry.TraceID(ctx), CodeHash: canon.Digest(req.Code),
			Code:     string(req.Code),
			Language: req.Language, Context: req.Context, ByHost: true,
		},
		request: req, limits: o.limits(req), version: o.opts.Version, snapshot: o.snapshotFor(ctx, req),
		redactor: o.redactor(),
	}, &o.parts, nil, time.Now())
	r.files.draft, r.session = o.draft(r.plan), o.openSession(r.plan)
	if r.session != nil {
		defer r.session.Close()
	}
	if err := r.openCalls(ctx, nil); err != nil {
		return nil, err
	}
	if req.OnStart != nil {
		req.OnStart(Live{Printed: func() Printed { return Printed{} }, Calls: r.calls.Begun})
	}
	outcome, err := r.callOnly(ctx)
	o.afterAnswer(func() {
		if outcome != nil {
			r.closeRecording(context.WithoutCancel(ctx), outcome)
		}
	})
	return outcome, err
}

// callOnly makes the one call and assembles the outcome.
func (r *run) callOnly(ctx context.Context) (*Outcome, error) {
	r.recordStart(ctx)
	if err := r.unrecorded(); err != nil {
		r.calls.Close()
		return nil, err
	}
	call := r.request.Call
	answer := r.calls.Call(ctx, broker.Call{ServerID: call.ServerID, Name: call.Name, Arguments: call.Arguments,
		Host: call.Host})
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	result := r.judgeCall(ctx, answer)
	if !r.isApp() || !result.OK {
		r.clean(&result)
	}
	r.removed = append(r.removed, r.files.found()...)
	outcome := r.seal(undo, result, r.calls.Close(), Printed{}, Metrics{})
	outcome.Direct = r.request.isHostsTool()
	return r.recorded(undo, outcome, ending{}), nil
}

// isApp reports whether the result is an app that the host shows. It is a program that was reviewed, and not a text for
// the model: a replacement within it would break it. The broker has removed Airlock's credentials.
func (r *run) isApp() bool {
	c := r.request.Call
	_, uri := catalog.SplitFeatureName(c.Name)
	return c.Host && c.kind() == catalog.KindResource && catalog.IsAppURI(uri)
}

// judgeCall turns the answer to a call into a result. Files among its content are
// attached to the run, so that the caller gets them as files.
func (r *run) judgeCall(ctx context.Context, answer broker.Answer) Result {
	if r.request.isHostsTool() && answer.Raw != nil { // also one that reports a failure
		return succeeded(answer.Raw)
	}
	if e := answer.Error; e != nil {
		if why := broker.Ended(context.Cause(ctx)); why != "" && e.Type != errortype.PolicyDenied {
			return failed(errortype.Killed, false, "the call was ended, because "+why+"; it may have been carried out")
		}
		if ctx.Err() != nil && e.Type != errortype.PolicyDenied {
			return failed(errortype.Killed, false,
				"the call was cancelled before it had ended; it may have been carried out")
		}
		return Result{Error: &Failure{Type: e.Type, Message: e.Message, Retryable: e.Retryable, Source: e.Source,
			CallID: e.CallID}}
	}
	if r.request.Call.kind() != catalog.KindTool {
		return succeeded(answer.Raw)
	}
	return succeeded(r.dataOf(answer.Raw))
}

// dataOf returns the value of a tool's result, as docs/contract.md describes `data`.
func (r *run) dataOf(raw json.RawMessage) json.RawMessage {
	var result struct {
		Structured json.RawMessage   `json:"structuredContent"`
		Content    []json.RawMessage `json:"content"`
	}
	if err := strictjson.UnmarshalOpen(raw, &result); err != nil {
		return raw
	}
	for i := range result.Content {
		result.Content[i] = r.withoutFile(result.Content[i])
	}
	if len(result.Structured) > 0 && !bytes.Equal(result.Structured, []byte("null")) {
		return result.Structured
	}
	var block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if len(result.Content) == 1 && strictjson.UnmarshalOpen(result.Content[0], &block) == nil && block.Type == "text" {
		if text := strings.TrimSpace(block.Text); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			if json.Valid([]byte(text)) {
				return json.RawMessage(text)
			}
		}
		return encoded(block.Text)
	}
	return encoded(result.Content)
}

// withoutFile attaches the file in a content block and returns its description in place of
// the block. It returns any other block unchanged.
func (r *run) withoutFile(block json.RawMessage) json.RawMessage {
	var b struct {
		Data     string `json:"data"`
		MIMEType string `json:"mimeType"`
		Resource struct {
			URI      string `json:"uri"`
			MIMEType string `json:"mimeType"`
			Blob     string `json:"blob"`
		} `json:"resource"`
	}
	if strictjson.UnmarshalOpen(block, &b) != nil || (b.Data == "" && b.Resource.Blob == "") {
		return block
	}
	mime, name := b.MIMEType, ""
	if b.Resource.Blob != "" {
		mime, name = b.Resource.MIMEType, b.Resource.URI[strings.LastIndexByte(b.Resource.URI, '/')+1:]
	}
	content, err := base64.StdEncoding.DecodeString(b.Data + b.Resource.Blob)
	if err != nil {
		return block
	}
	file, err := r.attach(content, mime, name)
	if err != nil { // the block exceeds a limit and is not moved to a file
		return block
	}
	return encoded(struct {
		Type string `json:"type"`
		*Attached
	}{string(file.Kind), r.described(file)})
}

func encoded(value any) json.RawMessage {
	text, err := canon.Verbatim(value)
	if err != nil { // cannot happen: the value was decoded from JSON
		return json.RawMessage("null")
	}
	return text
}

// errNoProgram is returned for the replay of a call without code or of a script. Neither
// receives answers that a replay could repeat.
func errNoProgram(recording *replay.Recording) error {
	if recording.Language == LanguageScript {
		return &InputError{"the run was a script without tools: its output depends on no answer",
			"airlock runs show " + recording.RunID + " --code"}
	}
	return &InputError{"the run was one call without a program, so there is nothing to run again",
		"airlock runs show " + recording.RunID}
}
