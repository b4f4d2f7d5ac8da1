package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// showOutcome shows the envelope of a line to a person: the result as text or as indented JSON, or the error, then the
// files and one line about the run. Control characters are escaped. The traceback is left out if it is in printed,
// which the person has already seen.
func showOutcome(out io.Writer, line []byte, printed string) error {
	var e orchestrator.Envelope
	if err := strictjson.UnmarshalOpen(line, &e); err != nil {
		return fmt.Errorf("reading the envelope: %w", err)
	}
	var text strings.Builder
	paint := verb.PainterFor(out)
	if failure := e.Result.Error; failure != nil {
		fmt.Fprintf(&text, "%s\n", paint.Paint(verb.Red, visible.Lines(failure.Type+": "+failure.Message)))
		if trace := strings.TrimRight(failure.Traceback, "\n"); !strings.Contains(printed, trace) {
			fmt.Fprintf(&text, "%s\n", visible.Lines(trace))
		}
	} else if result := resultText(e.Result.Data); e.Note == "" || result != "null" {
		fmt.Fprintf(&text, "%s\n", visible.Lines(strings.TrimRight(result, "\n")))
	}
	dim := func(format string, args ...any) {
		fmt.Fprintf(&text, "%s\n", paint.Paint(verb.Dim, visible.Line(fmt.Sprintf(format, args...))))
	}
	if e.Note != "" {
		dim("%s", e.Note)
	}
	for _, file := range e.Attachments {
		dim("attached %s (%s, %d bytes): %s", file.Name, file.MIME, file.Bytes, file.URI)
	}
	if e.ResultFile != nil {
		dim("the whole result has %d bytes: %s", e.ResultFile.Bytes, e.ResultFile.URI)
	}
	dim("%s", about(e))
	_, err := io.WriteString(out, text.String())
	return err
}

// resultText returns a text as it is, and other results as indented JSON.
func resultText(data json.RawMessage) string {
	var text string
	if strictjson.UnmarshalOpen(data, &text) == nil && len(data) > 0 && data[0] == '"' {
		return text
	}
	return string(canon.Indent(data))
}

// about describes a run in one line.
func about(e orchestrator.Envelope) string {
	words := []string{e.RunID}
	metrics := e.Result.Metrics
	words = append(words, (time.Duration(metrics.DurationMS) * time.Millisecond).String())
	if metrics.Calls > 0 {
		words = append(words, verb.Counted(metrics.Calls, "call"))
	}
	if metrics.CallsDenied > 0 {
		words = append(words, fmt.Sprintf("%d refused", metrics.CallsDenied))
	}
	return strings.Join(words, ", ")
}
