package orchestrator

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/redact"
)

// sealed runs a result through everything that stands between a sandbox and
// the line that is printed.
func sealed(t interface{ Fatalf(string, ...any) }, result Result) (Envelope, []byte) {
	r := &run{plan: plan{redactor: redact.New()}}
	r.clean(&result)
	envelope := Envelope{RunID: "run_1", Result: result}
	seal(&envelope, envelope.Result)
	line, err := envelope.Line()
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	return envelope, line
}

func TestTheLineHoldsWhateverComes(t *testing.T) {
	tests := []struct {
		name string
		in   Result
		want string // the data, or the error's type
	}{
		{"a small result", succeeded(json.RawMessage(`{"a":1}`)), `{"a":1}`},
		{"line ends of every kind", succeeded(json.RawMessage("\"a\u2028b\u2029c\u0085d\"")),
			`"a\u2028b\u2029c\u0085d"`},
		{"a result on several lines", succeeded(json.RawMessage("{\n\"a\":\n1}")), `{"a":1}`},
		{"integers beyond doubles", succeeded(json.RawMessage(`12345678901234567890`)), `12345678901234567890`},
		{"a result that is too large", succeeded(json.RawMessage(`"` + strings.Repeat("x", 70_000) + `"`)),
			errortype.Output},
		{"a name twice", succeeded(json.RawMessage(`{"a":1,"a":2}`)), errortype.NotSerializable},
		{"a number that no double holds", succeeded(json.RawMessage(`1e999`)), errortype.NotSerializable},
		{"half a surrogate pair", succeeded(json.RawMessage(`"\ud800"`)), errortype.NotSerializable},
		{"no JSON at all", succeeded(json.RawMessage(`{`)), errortype.NotSerializable},
		{"a message of control characters", failed("E", false, strings.Repeat("\x01", 100_000)), "E"},
		{"a message that is not UTF-8", failed("E", false, "\xff\xfe"), "E"},
		{"an error without a type", failed("", false, "x"), errortype.Sandbox},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			envelope, line := sealed(t, test.in)
			var printed struct {
				Result struct {
					Data  json.RawMessage
					Error *struct{ Type string }
				}
			}
			if err := json.Unmarshal(line, &printed); err != nil {
				t.Fatalf("the line does not parse: %v", err)
			}
			got := string(printed.Result.Data)
			if printed.Result.Error != nil {
				got = printed.Result.Error.Type
			}
			if got != test.want {
				t.Errorf("got %.100s, want %s", got, test.want)
			}
			if len(line) > MaxEnvelope || bytes.Count(line, []byte("\n")) != 1 {
				t.Errorf("%d bytes, %d lines", len(line), bytes.Count(line, []byte("\n")))
			}
			if !strings.HasPrefix(envelope.OutputDigest, "sha256:") {
				t.Errorf("output_digest: got %q", envelope.OutputDigest)
			}
		})
	}
}

func TestNoResultBreaksTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		result := Result{Error: &Failure{
			Type:      string(rapid.SliceOf(rapid.Byte()).Draw(t, "type")),
			Message:   string(rapid.SliceOfN(rapid.Byte(), 0, 20_000).Draw(t, "message")),
			Traceback: string(rapid.SliceOfN(rapid.Byte(), 0, 20_000).Draw(t, "traceback")),
		}}
		if rapid.Bool().Draw(t, "ok") {
			result = succeeded(rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
		}
		_, line := sealed(t, result)
		if !json.Valid(line) || len(line) > MaxEnvelope || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("%d bytes: %q", len(line), line)
		}
	})
}

func TestOutputDigestCanBeRecomputed(t *testing.T) {
	envelope, line := sealed(t, succeeded(json.RawMessage(`{"b":[1,2.50],"a":"é"}`)))
	var printed struct{ Result map[string]json.RawMessage }
	if err := json.Unmarshal(line, &printed); err != nil {
		t.Fatal(err)
	}
	delete(printed.Result, "metrics")
	canonical, err := canon.Marshal(printed.Result)
	if err != nil {
		t.Fatal(err)
	}
	if got := canon.Digest(canonical); got != envelope.OutputDigest {
		t.Errorf("recomputed %s, the envelope says %s", got, envelope.OutputDigest)
	}
}
