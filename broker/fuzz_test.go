package broker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/broker"
)

// FuzzAnswer lets a server return arbitrary bytes. The answer to the code must be JSON that matches
// the tool's output schema in every language.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"content":[],"structuredContent":{"n":3}}`, `{"structuredContent":{"n":"x"},"StructuredContent":{"n":3}}`,
		`{"structuredContent":{"n":3},"structuredContent":{"n":"x"}}`,
		`{"isError":true,"content":[{"type":"text","text":"no"}]}`,
		`{"isError":true,"isError":false}`, `{"structuredContent":{"n":3},"structured\u0043ontent":{"n":"x"}}`,
		`{"structuredContent":{"n":1e400}}`, `{"structuredContent":{"n":"\ud800"}}`, `[]`, ``, `{"content":{}}`,
	} {
		f.Add([]byte(seed))
	}
	fixture := newFixture(f, func(o *options) {
		o.Limits = admission.Limits{Calls: 1 << 40, Repeats: 1 << 40, BytesIn: 1 << 60, ServerRate: without,
			ToolRate: without}
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		fixture.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return raw,
				nil
		}
		s := open(t, fixture.Broker, broker.Run{ID: "run_1"}, fixture.snapshot, nil)
		answer := s.Call(t.Context(), call("count", `{}`))
		s.Close()
		line, err := json.Marshal(answer)
		if err != nil {
			t.Fatalf("the answer to %q cannot be encoded: %v", raw, err)
		}
		if !answer.OK {
			if answer.Error == nil || answer.Error.Type == "" {
				t.Errorf("%q: got %s, want a result or an error", raw, line)
			}
			return
		}
		// A map has exact names, and of duplicate names the last value, as in Python and
		// JavaScript.
		var result map[string]json.RawMessage
		var structured map[string]json.RawMessage
		if err := json.Unmarshal(answer.Raw, &result); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(result["structuredContent"], &structured); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		var n json.Number
		if err := json.Unmarshal(structured["n"], &n); err != nil || structured["n"][0] == '"' {
			t.Errorf("%q: got n = %s, want a number", raw, structured["n"])
		}
	})
}
