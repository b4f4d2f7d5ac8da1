package server

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// addTranscripts seeds a fuzz test with the messages of the hosts in the transcripts of the
// code face.
func addTranscripts(f *testing.F) {
	files, err := filepath.Glob("code/testdata/protocol/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("got %d transcripts (%v), want some", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var seed strings.Builder
		for line := range strings.Lines(string(text)) {
			if message, ok := strings.CutPrefix(line, "> "); ok {
				seed.WriteString(message)
			}
		}
		f.Add([]byte(seed.String()))
	}
}

// For any input of a host, the forwarded bytes are one message per line, and the answers are
// one JSON value per line.
func FuzzLines(f *testing.F) {
	addTranscripts(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var answered, passed bytes.Buffer
		if err := newLineFilter(bytes.NewReader(data), &answered).copyTo(&passed); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(answered.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("got the answer %q, want JSON", line)
			}
		}
		for line := range bytes.Lines(passed.Bytes()) {
			if _, err := jsonrpc.DecodeMessage(line); err != nil {
				t.Fatalf("got %q handed on, want a message: %v", line, err)
			}
		}
	})
}

// Issue 23: the cost of reading the messages of a host grows with their length and not faster.
func TestReadingMessagesIsLinear(t *testing.T) {
	units := append([]string{`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n", "[1,", "[]\n"}, testenv.Repetitions...)
	testenv.LinearTexts(t, units, 32<<10, map[string]func(string){"lines": func(s string) {
		_ = newLineFilter(strings.NewReader(s), io.Discard).copyTo(io.Discard)
	}})
}

// A message that is too long is answered with its ID, so that a host does not wait for
// it (issue 24: 16 MiB on stdio were never answered). It uses no more memory than the limit.
func TestTooLongLine(t *testing.T) {
	long := strings.Repeat("x", MaxMessage)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	refusal := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id +
			`,"error":{"code":-32600,"message":"the message has more than 16777216 bytes"}}` + "\n"
	}
	tests := []struct{ name, line, answer, passed string }{
		{"not JSON", long + "x", refusal("null"), ""},
		{"the ID first", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + long + `"}}`, refusal("7"),
			""},
		{"the ID last", `{"params":{"id":3,"x":"` + long + `\""},"id":"a\"b"}`, refusal(`"a\"b"`), ""},
		{"a broken message", `{"id":7,"params":{"x":"` + long, refusal("7"), ""},
		{"a notification", `{"method":"x","params":{"id":9,"x":"` + long + `"}}`, refusal("null"), ""},
		{"a response", `{"id":7,"result":{"x":"` + long + `"}}`, "", refusal("7")},
		{"an ID that is too long", `{"id":"` + long + `"}`, refusal("null"), ""},
		{"an ID with half a surrogate pair", `{"id":"\ud800","x":"` + long + `"}`, refusal("null"), ""},
		{"a name that is too long", `{"` + long + `":1,"id":5}`, refusal("5"), ""},
	}
	for _, test := range tests {
		var out, passed bytes.Buffer
		filter := newLineFilter(strings.NewReader(test.line+"\n"+ping), &out)
		if err := filter.copyTo(&passed); err != nil {
			t.Fatal(err)
		}
		if out.String() != test.answer || passed.String() != test.passed+ping+"\n" {
			t.Errorf("%s: got %q and handed on %q, want %q and %q", test.name, out.String(), passed.String(),
				test.answer, test.passed+ping+"\n")
		}
	}
}

// A message that two decoders could read differently is answered with its ID (issue 24).
func TestAmbiguousMessages(t *testing.T) {
	tests := []struct{ name, line, id, why string }{
		{"the method twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, "1", "twice"},
		{"the params twice", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`, "1", "twice"},
		{"the ID twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "1", "twice"},
		{"a tool's name twice",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"name":"b"}}`, "1",
			"twice"},
		{"the arguments twice",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":{}}}`, "1",
			"twice"},
		{"a name twice, once escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"x"}`, "1", "twice"},
		{"half a surrogate pair", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"\ud800"}}`, "1",
			"surrogate"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "1", "UTF-8"},
	}
	for _, test := range tests {
		var out, passed bytes.Buffer
		if err := newLineFilter(strings.NewReader(test.line), &out).copyTo(&passed); err != nil {
			t.Fatal(err)
		}
		want := `{"jsonrpc":"2.0","id":` + test.id + `,"error":{"code":-32600,`
		if passed.Len() > 0 || !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), test.why) {
			t.Errorf("%s: got %q and handed on %q, want %s with %q", test.name, out.String(), passed.String(), want,
				test.why)
		}
	}
}
