package code

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The maximum output of a program in an answer, in bytes of each stream. The end is kept,
// because that is the interesting part of a failure.
const (
	maxLog      = 16 << 10 // in get_run, whose purpose is to show it
	maxLogTail  = 1 << 10  // beside a result
	maxLogAlone = 4 << 10  // instead of a result
)

// envelopeKey is the key of the whole envelope in an answer's _meta.
const envelopeKey = "io.github.airlock-mcp/envelope"

// result is the outcome of a run in structured content.
type result struct {
	OK    bool                  `json:"ok"`
	Data  json.RawMessage       `json:"data,omitempty"`  // set, possibly to null, exactly when OK
	Error *orchestrator.Failure `json:"error,omitempty"` // set exactly when not OK
	// Note is the probable reason why the program has set no result, and names refused connections. If there is no
	// result, Printed is the end of its stdout.
	Note    string `json:"note,omitempty"`
	Printed string `json:"printed,omitempty"`
	// Attachments are the files that the program has attached.
	Attachments []orchestrator.Attached `json:"attachments,omitempty"`
	// ResultFile is the whole result if Data is a preview of it.
	ResultFile *orchestrator.ResultFile `json:"result_file,omitempty"`
}

// outcome is the answer of run_code for a finished run.
type outcome struct {
	result
	RunID string `json:"run_id"`
	// Stdout and Stderr are the ends of the output, also in texts: some hosts show the model only structured content.
	Stdout string `json:"stdout,omitempty"` // not if Printed has it
	Stderr string `json:"stderr,omitempty"`
}

// finished answers with the outcome of a run. The model sees its result or error, its
// attachments, the end of its output, and its ID. The whole envelope is in _meta. If the
// program failed, the call fails, because hosts show failed calls to the model as errors to
// repair.
func (s *Server) finished(ctx context.Context, o *orchestrator.Outcome, version string) (*mcp.CallToolResult, error) {
	if o.Direct {
		return s.direct(o)
	}
	envelope, p, most := o.Envelope, withoutResult(o), maxLogTail
	if envelope.Note != "" { // without a result, the output is in the answer
		most = maxLogAlone
	}
	structured := outcome{result: resultOf(envelope), RunID: envelope.RunID, Stderr: end(p.Stderr, most)}
	if envelope.Printed == "" {
		structured.Stdout = end(p.Stdout, most)
	}
	res, err := content(structured)
	if err != nil {
		return nil, err
	}
	addResult(res, envelope)
	s.addFiles(ctx, res, envelope, version)
	addText(res, envelope.Note)
	addLogs(res, p, most)
	addText(res, runLine(envelope))
	res.IsError = !envelope.Result.OK
	res.Meta = mcp.Meta{envelopeKey: envelope}
	return res, nil
}

func resultOf(envelope orchestrator.Envelope) result {
	r := envelope.Result
	return result{
		OK: r.OK, Data: r.Data, Error: r.Error, Note: envelope.Note, Printed: envelope.Printed,
		Attachments: envelope.Attachments, ResultFile: envelope.ResultFile,
	}
}

// addResult adds the result as a text, unless the run has only attachments.
func addResult(res *mcp.CallToolResult, envelope orchestrator.Envelope) {
	if r := envelope.Result; r.OK && string(r.Data) == "null" && len(envelope.Attachments) > 0 {
		return
	}
	addText(res, resultText(envelope.Result))
}

// content returns a result with value as structured content and without text.
func content(value any) (*mcp.CallToolResult, error) {
	line, err := server.Encode(value)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(line)}, nil
}

func addText(res *mcp.CallToolResult, text string) {
	if text != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: cut(text)})
	}
}

// addLogs adds the ends of both streams, unless they are empty.
func addLogs(res *mcp.CallToolResult, p orchestrator.Printed, most int) {
	for _, stream := range []struct {
		name, text string
		cut        int64
	}{{"stdout", p.Stdout, p.StdoutCut}, {"stderr", p.Stderr, p.StderrCut}} {
		switch shown := end(stream.text, most); {
		case shown != "":
			addText(res, stream.name+":\n"+shown)
		case stream.cut > 0: // not even the marker fits the limit
			addText(res, fmt.Sprintf("%s: <TRUNCATED %d bytes>", stream.name, stream.cut))
		}
	}
}

// end returns the end of a stream without the last line's end.
func end(text string, most int) string { return strings.TrimRight(tail(text, most), "\n") }

// withoutResult returns the output of a run without the line of its result and without the
// traceback of its error.
func withoutResult(o *orchestrator.Outcome) orchestrator.Printed {
	p := o.Printed
	lines := strings.TrimRight(p.Stdout, "\n")
	start := strings.LastIndexByte(lines, '\n') + 1
	if r := o.Envelope.Result; r.OK && len(r.Data) > 0 && strings.TrimSpace(lines[start:]) == string(r.Data) {
		p.Stdout = lines[:start]
	}
	if e := o.Envelope.Result.Error; e != nil && e.Traceback != "" {
		p.Stderr = strings.TrimSuffix(strings.TrimRight(p.Stderr, "\n"), strings.TrimRight(e.Traceback, "\n"))
	}
	return p
}

// resultText returns the result as a text for a model: a string as it is, other data as
// JSON, an error with its type and location.
func resultText(r orchestrator.Result) string {
	if r.Error == nil {
		var text string
		if bytes.HasPrefix(r.Data, []byte{'"'}) && strictjson.UnmarshalOpen(r.Data, &text) == nil && text != "" {
			return text
		}
		return string(r.Data)
	}
	e := r.Error
	said := e.Type + ": " + e.Message
	if e.Traceback == "" {
		return said
	}
	if traceback := strings.TrimRight(e.Traceback, "\n"); strings.HasSuffix(traceback, said) {
		return traceback
	}
	return said + "\n" + strings.TrimRight(e.Traceback, "\n")
}

// runLine returns the line about the run itself: its ID and, after a failure, the facts that a
// model needs before a retry.
func runLine(envelope orchestrator.Envelope) string {
	line := "run_id: " + envelope.RunID
	if envelope.Result.OK {
		return line
	}
	if calls := envelope.Result.Metrics.Calls; calls > 0 && envelope.ToolName != orchestrator.LanguageCall {
		line += fmt.Sprintf("; calls made: %d", calls)
	}
	if envelope.Result.Error.Retryable {
		line += "; retryable"
	}
	return line
}

// begun is the answer of run_code for a run in the background.
type begun struct {
	RunID string     `json:"run_id"`
	State runs.State `json:"state"`
}

// started answers for a run in the background.
func started(run *runs.Run) (*mcp.CallToolResult, error) {
	state := run.Status().State
	res, err := content(begun{run.ID(), state})
	if err != nil {
		return nil, err
	}
	text := "it goes on in the background. get_run shows its output so far and its outcome."
	if state == runs.Done {
		text = "it is done. get_run shows its outcome."
	}
	addText(res, "run_id: "+run.ID()+"; "+text)
	return res, nil
}

// statePending is the state of a run that waits for a person beyond the request that began it.
const statePending runs.State = "PENDING"

// pending answers for a run that waits for a person.
func pending(status runs.Status) (*mcp.CallToolResult, error) {
	res, err := content(begun{status.ID, statePending})
	if err != nil {
		return nil, err
	}
	q := status.Questions[0]
	addText(res, fmt.Sprintf("run_id: %s; PENDING: it waits for a person to allow %s.%s, until %s: %s. It goes on "+
		"after the answer, where it was; do not run the code again. get_run shows its outcome.", status.ID, q.ServerID,
		q.ToolName,
		q.Expires.UTC().Format(time.RFC3339), howToAnswer(q, false)))
	return res, nil
}

// shown is the answer of get_run.
type shown struct {
	RunID     string     `json:"run_id"`
	State     runs.State `json:"state"`
	Suspended time.Time  `json:"suspended_since,omitzero"`
	*result              // of a run that is done
	Waiting   []waitsFor `json:"waiting,omitempty"`
	Stdout    string     `json:"stdout,omitempty"`
	Stderr    string     `json:"stderr,omitempty"`
	StdoutCut int64      `json:"stdout_cut_bytes,omitempty"`
	StderrCut int64      `json:"stderr_cut_bytes,omitempty"`
}

// waitsFor is a question that a run waits for.
type waitsFor struct {
	QuestionID string    `json:"question_id"`
	ServerID   string    `json:"serverId"`
	ToolName   string    `json:"toolName"`
	Expires    time.Time `json:"expires"`
	Answer     string    `json:"answer"` // how a person answers
}

// stateUnknown is the state of a run that does not exist or is no longer kept.
const stateUnknown runs.State = "unknown"

// show answers with the state of a run.
func (s *Server) show(ctx context.Context, status runs.Status, p orchestrator.Printed, now time.Time,
	req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	hostAsks, version := s.hostAsks(status.Owner.Kind, req), req.ProtocolVersion()
	answer := shown{
		RunID: status.ID, State: status.State, Suspended: status.Suspended,
		StdoutCut: p.StdoutCut, StderrCut: p.StderrCut, Stdout: tail(p.Stdout, maxLog), Stderr: tail(p.Stderr, maxLog),
	}
	for _, q := range status.Questions {
		answer.Waiting = append(answer.Waiting, waitsFor{q.ID, q.ServerID, q.ToolName, q.Expires,
			howToAnswer(q, hostAsks)})
	}
	if status.Outcome != nil {
		r := resultOf(status.Outcome.Envelope)
		r.Printed = "" // stdout has it
		answer.result = &r
	}
	res, err := content(answer)
	if err != nil {
		return nil, err
	}
	if status.Outcome == nil {
		addText(res, fmt.Sprintf("run_id: %s; %s", status.ID, standing(status, now, hostAsks)))
	} else {
		addResult(res, status.Outcome.Envelope)
		s.addFiles(ctx, res, status.Outcome.Envelope, version)
		addText(res, status.Outcome.Envelope.Note)
		res.Meta = mcp.Meta{envelopeKey: status.Outcome.Envelope}
	}
	addLogs(res, p, maxLog)
	if status.Outcome != nil {
		addText(res, runLine(status.Outcome.Envelope))
	}
	return res, nil
}

// standing describes the state of a run in a few words.
func standing(status runs.Status, now time.Time, hostAsks bool) string {
	switch {
	case status.State == runs.Queued && status.Restored:
		return "queued: Airlock has started again and checks the stored state of the run; then it goes on where it was"
	case status.State == runs.Queued:
		return "queued: it waits for a free sandbox"
	case len(status.Questions) > 0:
		q := status.Questions[0]
		return fmt.Sprintf("waiting for a person to allow %s.%s: %s%s", q.ServerID, q.ToolName,
			howToAnswer(q, hostAsks), suspension(status))
	case !status.Suspended.IsZero():
		return "answered: it waits for a free sandbox to go on" + suspension(status)
	}
	return fmt.Sprintf("running for %d s", int(now.Sub(status.Began).Seconds()))
}

// suspension describes since when a run is suspended. It is empty if it is not.
func suspension(status runs.Status) string {
	if status.Suspended.IsZero() {
		return ""
	}
	return "; suspended since " + status.Suspended.UTC().Format(time.RFC3339) + ", it takes up nothing meanwhile"
}

// howToAnswer returns instructions for answering a question: in a terminal, and also in the host
// if hostAsks is set.
func howToAnswer(q approval.Question, hostAsks bool) string {
	terminal := "in a terminal with `airlock approvals show " + q.ID + "` and `airlock approvals watch`"
	if hostAsks {
		return "in the host's form, or " + terminal
	}
	return terminal
}
