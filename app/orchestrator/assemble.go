package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// The most that the texts of a failure may take, in bytes. The guest keeps to
// the same; the host does not rely on it.
const (
	maxType      = 128
	maxMessage   = 4 << 10
	maxTraceback = 8 << 10
)

// adviceLarge is the advice for a result that is too large. The guests have the same sentence.
const adviceLarge = "return a summary, and hand over the rest with client.attach or keep it in /workspace/session " +
	"for the next run"

// assemble builds the outcome from the host's own observations and from the guest's delivery,
// which it redacts, bounds and checks.
func (r *run) assemble(ctx context.Context, ended ending, calls broker.Summary, logs logs,
	usage runner.Usage) *Outcome {
	result := r.judge(ended, logs)
	r.removed = append(r.removed, r.files.found()...)
	var note, end string
	var printed Printed
	size := len(result.Data) + logs.size()
	if result.Error != nil {
		size += len(result.Error.Message) + len(result.Error.Traceback)
	}
	if size > muchToRedact { // others can use its slot while this run waits for its turn
		go r.sandbox.Close() // tearDown waits for it and logs its error
	}
	r.inTurn(ctx, size, func() {
		r.clean(&result) // before the logs: placeholders are numbered in this order, also in a replay
		note, end = r.missingData(ended, result, logs)
		if result.OK {
			note = cut(r.redact(r.network.explain(note)), maxNote)
		}
		printed = r.print(logs)
	})
	cpu := usage.CPU + time.Duration(r.cleaned.Load())
	outcome := r.seal(ctx, result, calls, printed,
		Metrics{PeakMemoryBytes: usage.PeakMemory, CPUMS: cpu.Milliseconds()})
	outcome.Envelope.Note, outcome.Envelope.Printed, outcome.End = note, end, r.endOf(ended, logs)
	return outcome
}

// seal puts a cleaned result into its envelope, with what it cost.
func (r *run) seal(ctx context.Context, result Result, calls broker.Summary, printed Printed,
	metrics Metrics) *Outcome {
	metrics.DurationMS = time.Since(r.started).Milliseconds()
	metrics.Calls, metrics.CallsDenied = calls.Made, calls.Denied
	metrics.BytesInSandbox, metrics.BytesReturned = calls.BytesIn, int64(len(result.Data))
	metrics.StdoutCut, metrics.StderrCut = printed.StdoutCut, printed.StderrCut
	result.Metrics = metrics
	envelope := Envelope{
		RunID: r.identity.ID, TraceID: r.identity.TraceID,
		ToolName: r.toolName(), ToolVersion: r.version,
		InputDigest:  r.identity.CodeHash,
		SandboxImage: r.imageName(),
		DurationMS:   metrics.DurationMS, ApprovalState: calls.ApprovalState, Result: result,
		Redactions: redactions(r.removed, calls.Redactions), Attachments: r.attachments(),
	}
	r.keepLarge(ctx, &envelope)
	seal(&envelope, result)
	return &Outcome{Envelope: envelope, Printed: printed, redactions: redact.Counts(r.removed), open: calls.Open}
}

// toolName returns the envelope's name of the tool.
func (p plan) toolName() string {
	if p.request.Call != nil {
		return LanguageCall
	}
	if p.request.Script != nil {
		return "python-runner"
	}
	return p.request.Language + "-runner"
}

// imageName returns the name and digest of the sandbox's image, or an empty string if the
// run had no sandbox.
func (p plan) imageName() string {
	if p.image.Name == "" {
		return ""
	}
	return p.image.Name + "@" + p.image.Digest
}

// redactions returns the number of redactions by kind: in the results and output of the
// run, and in the answers to its calls.
func redactions(left []redact.Finding, answered map[string]int) map[string]int {
	counts := redact.Counts(left)
	for kind, n := range answered {
		if counts == nil {
			counts = map[string]int{}
		}
		counts[kind] += n
	}
	return counts
}

// Refused returns the envelope of a request that was refused, for callers that always answer
// with an envelope.
func Refused(req Request, version, kind, message string) Envelope {
	result := failed(kind, kind == errortype.RateLimit, cut(strings.ToValidUTF8(message, "\uFFFD"), maxMessage))
	result.Error.Source = errortype.SourceSandbox
	if req.ID == "" {
		req.ID = telemetry.NewID("run")
	}
	envelope := Envelope{
		RunID: req.ID, TraceID: telemetry.NewTraceID(),
		ToolName: req.Language + "-runner", ToolVersion: version,
		InputDigest: canon.Digest(req.Code), ApprovalState: string(approval.NotRequired), Result: result,
	}
	seal(&envelope, result)
	return envelope
}

// clean redacts and bounds the guest's delivery.
func (r *run) clean(result *Result) {
	if result.OK {
		data, found, err := r.redactor.JSON(result.Data)
		if errors.Is(err, canon.ErrDeep) {
			*result = failed(errortype.NotSerializable, false,
				fmt.Sprintf("the result is nested more than %d levels deep; return it flatter", canon.MaxDepth))
			return
		}
		if err != nil {
			*result = failed(errortype.NotSerializable, false, "the result is not valid JSON")
			return
		}
		result.Data = data
		r.removed = append(r.removed, found...)
		return
	}
	e := result.Error
	e.Type = cut(r.redact(e.Type), maxType)
	e.Message = cut(r.redact(r.network.explain(e.Message)), maxMessage)
	e.Traceback = cut(r.redact(e.Traceback), maxTraceback)
	if e.Type == "" {
		e.Type = errortype.Sandbox
	}
}

// redact removes secrets and personal data, and counts them by kind.
func (r *run) redact(text string) string {
	cleaned, found := r.redactor.Bytes([]byte(text))
	r.removed = append(r.removed, found...)
	return strings.ToValidUTF8(string(cleaned), "\uFFFD")
}

// seal sets the digest of the whole result, of which the envelope may contain a preview, and
// replaces the result if the line would exceed its limit.
func seal(envelope *Envelope, whole Result) {
	digest, err := outputDigest(whole)
	if err != nil {
		replace(envelope, failed(errortype.NotSerializable, false,
			"the result has no canonical JSON form (RFC 8785): object keys must be unique, numbers finite, and text "+
				"without lone surrogates"))
		return
	}
	envelope.OutputDigest = digest
	line, err := envelope.Line()
	if err == nil && len(line) <= MaxEnvelope {
		return
	}
	if envelope.Result.OK {
		size := len(envelope.Result.Data)
		replace(envelope, failed(errortype.Output, false, fmt.Sprintf(
			"the result has %d bytes, more than fits the %d of a run's line; "+adviceLarge, size, MaxEnvelope)))
		return
	}
	// Texts can grow sixfold when JSON escapes their control characters.
	shorter := *envelope.Result.Error
	shorter.Message, shorter.Traceback = cut(shorter.Message, maxMessage/2), cut(shorter.Traceback, maxTraceback/8)
	replace(envelope, Result{Error: &shorter})
}

// replace replaces a result that cannot be returned by another failure and keeps the
// metrics.
func replace(envelope *Envelope, result Result) {
	result.Metrics = envelope.Result.Metrics
	result.Metrics.BytesReturned = 0
	envelope.Result = result
	envelope.OutputDigest, _ = outputDigest(result) // cannot fail: the texts are valid UTF-8
}

// outputDigest returns the digest of the RFC 8785 form of the result without its metrics,
// which differ from run to run.
func outputDigest(result Result) (string, error) {
	canonical, err := canon.Marshal(struct {
		OK    bool            `json:"ok"`
		Data  json.RawMessage `json:"data,omitempty"`
		Error *Failure        `json:"error,omitempty"`
	}{result.OK, result.Data, result.Error})
	if err != nil {
		return "", err
	}
	return canon.Digest(canonical), nil
}

// cut shortens text to at most limit bytes, on a character boundary, and appends how many
// bytes were cut.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	kept := truncate.Head(text, limit)
	return fmt.Sprintf("%s… [%d bytes cut]", kept, len(text)-len(kept))
}
