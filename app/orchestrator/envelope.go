package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/errortype"
)

// MaxEnvelope is the largest line, in bytes with its newline, that a run prints.
const MaxEnvelope = 64 << 10

// Envelope is the one JSON line that a run prints. The host side assembles it;
// nothing inside the sandbox can write any of its fields but Result's data, Note,
// Printed and the names in Attachments.
type Envelope struct {
	RunID        string `json:"run_id"`
	TraceID      string `json:"trace_id"`
	ToolName     string `json:"tool_name"`     // "python-runner" or "node-runner"
	ToolVersion  string `json:"tool_version"`  // Airlock's version
	InputDigest  string `json:"input_digest"`  // over the code's bytes
	OutputDigest string `json:"output_digest"` // over RFC 8785 of Result without metrics
	SandboxImage string `json:"sandbox_image"` // name@sha256:…
	DurationMS   int64  `json:"duration_ms"`   // from code received to result known, whole milliseconds
	// a state of admission/approval: the most restrictive that any call met
	ApprovalState string `json:"approval_state"`
	Result        Result `json:"result"`
	// Note explains a null result of code that has set no result, and names connections that were refused to code
	// without an error. If the result is null, Printed is the end
	// of its stdout. Both come from the sandbox and are redacted, but not verified.
	Note    string `json:"note,omitempty"`
	Printed string `json:"printed,omitempty"`
	// Redactions counts by kind what was removed from all that the run returned,
	// printed and was answered by tools.
	Redactions map[string]int `json:"redactions,omitempty"`
	// Attachments are the files that the code has attached, in order.
	Attachments []Attached `json:"attachments,omitempty"`
	// ResultFile is the whole result, if it is too large for the envelope. If the result is
	// ok, Data is a preview. OutputDigest is computed over the whole result.
	ResultFile *ResultFile `json:"result_file,omitempty"`
}

// Attached is a file that the code has attached.
type Attached struct {
	Name  string `json:"name"`
	MIME  string `json:"mime_type"`
	Kind  string `json:"kind"` // "image", "audio" or "file"
	Bytes int64  `json:"bytes"`
	URI   string `json:"uri"`
	Note  string `json:"note,omitempty"` // why it is not what it was announced as
}

// ResultFile is a result that is kept as a file.
type ResultFile struct {
	URI   string `json:"uri"`
	Bytes int64  `json:"bytes"`
}

// Line returns the envelope as one line of JSON with its newline. The other characters that
// Unicode counts as line ends are escaped (Unicode Standard, section 5.8), so every reader
// finds exactly one line.
func (e Envelope) Line() ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("encoding the envelope of %q: %w", e.RunID, err)
	}
	text := line.Bytes()
	for _, end := range []rune{'\u0085', '\u2028', '\u2029'} {
		// Outside of texts JSON has no such character.
		text = bytes.ReplaceAll(text, []byte(string(end)), fmt.Appendf(nil, `\u%04x`, end))
	}
	return text, nil
}

// Result is the result of the code: Data if OK is set, Error otherwise.
type Result struct {
	OK      bool            `json:"ok"`
	Data    json.RawMessage `json:"data,omitempty"` // set, possibly to null, exactly when OK
	Error   *Failure        `json:"error,omitempty"`
	Metrics Metrics         `json:"metrics"`
}

// Failure describes why a run has no result, so that a model can repair its code.
type Failure struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	Source    string `json:"source,omitempty"` // "code", "tool", "broker" or "sandbox"
	Traceback string `json:"traceback,omitempty"`
	CallID    string `json:"call_id,omitempty"`
}

// Refusal reports whether a run failed because policy or a person refused a call. Code can
// choose the type of its error but cannot set the source to the broker.
func (f *Failure) Refusal() bool {
	return errortype.IsDenial(f.Type) && f.Source == errortype.SourceBroker
}

// Metrics are what a run cost. Only DurationMS is always known.
type Metrics struct {
	DurationMS      int64 `json:"duration_ms"`
	Calls           int   `json:"calls,omitempty"`             // tool calls that were made
	CallsDenied     int   `json:"calls_denied,omitempty"`      // tool calls that were refused and not made
	BytesInSandbox  int64 `json:"bytes_in_sandbox,omitempty"`  // tool results that went into the sandbox
	BytesReturned   int64 `json:"bytes_returned,omitempty"`    // JSON bytes of Data
	PeakMemoryBytes int64 `json:"peak_memory_bytes,omitempty"` // whole sandbox
	// user and system, milliseconds; of the sandbox and of redacting what left it
	CPUMS     int64 `json:"cpu_ms,omitempty"`
	StdoutCut int64 `json:"stdout_cut_bytes,omitempty"` // printed to stdout, but not kept
	StderrCut int64 `json:"stderr_cut_bytes,omitempty"` // printed to stderr, but not kept
}
