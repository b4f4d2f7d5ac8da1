package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// addTranscripts seeds a fuzz test with what hosts say in the transcripts of the
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

// Whatever bytes a host sends, what is handed on is one message a line, and
// what is answered is one JSON value a line.
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

// A message that is too long is refused, whatever it holds, and costs no more
// memory than the limit.
func TestTooLongLine(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("x", MaxMessage+1)
	filter := newLineFilter(strings.NewReader(long+"\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`), &out)
	var passed bytes.Buffer
	if err := filter.copyTo(&passed); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message has more than 16777216 bytes"}}` + "\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if want := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"; passed.String() != want {
		t.Errorf("got %q handed on, want %q", passed.String(), want)
	}
}
