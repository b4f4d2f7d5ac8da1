package orchestrator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
)

// calling makes one call without code.
func (l *lab) calling(t *testing.T, tool, arguments string) *Outcome {
	t.Helper()
	req, err := CallRequest(ToolCall{ServerID: "demo", Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	req.Caller, req.PreviewLarge = ofSession("ses_1").Caller, true
	if err := l.Check(req); err != nil {
		t.Fatal(err)
	}
	outcome, err := l.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// A call without code is a run on the path of all calls: its result as code would
// see it, policy, records, and no sandbox.
func TestCallWithoutCode(t *testing.T) {
	var chart bytes.Buffer
	if err := png.Encode(&chart, image.NewGray(image.Rect(0, 0, 3, 3))); err != nil {
		t.Fatal(err)
	}
	shown := base64.StdEncoding.EncodeToString(chart.Bytes())
	tests := []struct {
		name, tool, arguments, answer string
		data, failure                 string // contained in
		files                         int
	}{
		{"structured content", "echo", `{}`,
			`{"structuredContent":{"n":12345678901234567890},"content":[{"type":"text","text":"x"}]}`,
			`{"n":12345678901234567890}`, "", 0},
		{"a text", "echo", `{"a":1}`, `{"content":[{"type":"text","text":"two\nlines <&>"}]}`, `"two\nlines <&>"`, "",
			0},
		{"a text that is JSON", "echo", `{}`, `{"content":[{"type":"text","text":" [1, 2] "}]}`, `[1, 2]`, "", 0},
		{"several blocks", "echo", `{}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			`"text":"b"`, "", 0},
		{"nothing", "echo", `{}`, `{"content":[]}`, `[]`, "", 0},
		{"an image", "echo", `{}`,
			fmt.Sprintf(`{"content":[{"type":"text","text":"here"},{"type":"image","mimeType":"image/png","data":%q}]}`,
				shown), `"uri":"airlock://runs/run_`, "", 1},
		{"a file", "echo", `{}`,
			fmt.Sprintf(`{"content":[{"type":"resource","resource":{"uri":"file:///a/b.bin","blob":%q}}]}`, "AAEC"),
			`"name":"b.bin"`, "", 1},
		{"an address", "echo", `{}`, `{"content":[{"type":"text","text":"ann.smith@gmail.com"}]}`, `[redacted`, "", 0},
		{"a large result", "echo", `{}`, fmt.Sprintf(
			`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("x", 100_000)), `bytes more]`, "", 0},
		{"a failure of the tool", "echo", `{}`, `{"isError":true,"content":[{"type":"text","text":"no such file"}]}`,
			"", "no such file", 0},
		{"what policy denies", "forbidden", `{}`, "", "", "PolicyDenied", 0},
		{"an unknown tool", "nothing", `{}`, "", "", "UnknownTool", 0},
		{"no object", "echo", `[]`, "", "", "ValidationError", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			l := newLab(t, func(context.Context, string) (json.RawMessage, error) {
				calls++
				return json.RawMessage(test.answer), nil
			}, admission.Limits{}, Options{}, nil)
			var err error
			if l.parts.Attachments, err = attachment.Open(filepath.Join(t.TempDir(), "files"), nil); err != nil {
				t.Fatal(err)
			}
			if l.parts.Recordings, err = replay.Open(filepath.Join(t.TempDir(), "recordings"), nil); err != nil {
				t.Fatal(err)
			}
			envelope := l.calling(t, test.tool, test.arguments).Envelope
			l.Close()
			said := ""
			if e := envelope.Result.Error; e != nil {
				said = e.Type + ": " + e.Message
			}
			if !strings.Contains(string(envelope.Result.Data), test.data) || !strings.Contains(said, test.failure) ||
				envelope.Result.OK != (test.failure == "") {
				t.Errorf("got %.300s %q, want %q or %q", envelope.Result.Data, said, test.data, test.failure)
			}
			if strings.Contains(string(envelope.Result.Data), "gmail") ||
				strings.Contains(string(envelope.Result.Data), shown) || len(envelope.Attachments) != test.files {
				t.Errorf("got %s and %d files, want %d", envelope.Result.Data, len(envelope.Attachments), test.files)
			}
			metrics := envelope.Result.Metrics
			if envelope.ToolName != LanguageCall || envelope.SandboxImage != "" || metrics.Calls != calls ||
				metrics.Calls+metrics.CallsDenied != 1 || (test.answer == "") != (calls == 0) {
				t.Errorf("got %+v after %d calls", envelope, calls)
			}
			all := l.records(t)
			first, last := all[1], all[len(all)-1] // the log itself begins before
			if first.Kind != audit.KindRunStart || first.Language != LanguageCall || last.Kind != audit.KindRunEnd ||
				last.RunID != envelope.RunID || len(all) < 4 {
				t.Errorf("the records: %d, from %s to %s", len(all), first.Kind, last.Kind)
			}
			var refused *InputError
			if _, err := l.Replay(t.Context(), envelope.RunID); !errors.As(err, &refused) ||
				!strings.Contains(err.Error(), "nothing to run again") {
				t.Errorf("a replay: got %v, want a refusal", err)
			}
			if recording, err := l.parts.Recordings.Load(envelope.RunID); err != nil ||
				!strings.Contains(recording.Code, `"tool":"`+test.tool) {
				t.Errorf("the recording: got %+v and %v", recording, err)
			}
		})
	}
}
