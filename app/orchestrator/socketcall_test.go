package orchestrator

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// Params that are read without the decoder are what the decoder reads.
func FuzzPlainCall(f *testing.F) {
	f.Add(`{"server_id":"crm","name":"find","arguments":{"a":[1,"}"]},"line":12}`)
	f.Add(`{"name":"find","server_id":"crm","arguments":null}`)
	f.Add(`{"server_id":"crm","name":"find","line":-0}`)
	f.Add(`{"server_id":"crm","name":"\u0066ind","Line":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return // no frame has such params
		}
		got, plain := plainCall([]byte(text))
		if !plain {
			return
		}
		var want callParams
		if err := strictjson.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%q was read; the decoder says %v", text, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestPlainCall(t *testing.T) {
	for name, test := range map[string]struct {
		params string
		plain  bool
	}{
		"as the client writes it": {`{"server_id":"crm","name":"find","arguments":{"a":1},"line":3}`, true},
		"without a line":          {`{"server_id":"crm","name":"find","arguments":{}}`, true},
		"an unknown member":       {`{"server_id":"crm","name":"find","run_id":"other"}`, false},
		"a member twice":          {`{"server_id":"crm","name":"find","name":"other"}`, false},
		"another case":            {`{"Server_ID":"crm","name":"find"}`, false},
		"escapes":                 {`{"server_id":"crm","name":"f\u0069nd"}`, false},
		"a number as name":        {`{"server_id":"crm","name":1}`, false},
		"no name":                 {`{"server_id":"crm"}`, false},
		"a line that is no line":  {`{"server_id":"crm","name":"find","line":1.5}`, false},
	} {
		if got, plain := plainCall([]byte(test.params)); plain != test.plain {
			t.Errorf("%s: got %+v %v, want %v", name, got, plain, test.plain)
		}
	}
}

// An answer that writes itself is what encoding/json makes of it.
func TestCallAnswersAsJSON(t *testing.T) {
	for name, answer := range map[string]broker.Answer{
		"a result": {OK: true, Raw: json.RawMessage(
			`{"content":[{"type":"text","text":"<a> \u2028"}]}`)},
		"a result of many lines": {OK: true, Raw: json.RawMessage("{\n\t\"content\": []\r\n}")},
		"an error": {Error: &broker.Error{Type: "Timeout", Message: "a <b>", Retryable: true,
			CallID: "call_1"}},
		"an error with a result": {Raw: json.RawMessage(`{"isError":true}`),
			Error: &broker.Error{Type: "ToolError", Message: "x"}},
		"a result without a text": {OK: true},
	} {
		got, err := callAnswer{Answer: answer}.AppendJSON([]byte("before "))
		if err != nil {
			t.Fatal(err)
		}
		want, err := wire.AppendValue([]byte("before "), answer)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
