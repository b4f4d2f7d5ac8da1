package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// addTranscripts seeds a fuzz test with what hosts say in the transcripts.
func addTranscripts(f *testing.F) {
	for _, file := range testdataFiles(f, "protocol/*.txt") {
		var seed strings.Builder
		for line := range strings.Lines(readFile(f, file)) {
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

// Whatever bytes a host sends, every line it gets back is JSON and the session
// still answers afterwards.
func FuzzSession(f *testing.F) {
	addTranscripts(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _ := newServer(t)
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- s.Serve(t.Context(), in, out)
			out.Close()
		}()
		go func() {
			toServer.Write(data)
			io.WriteString(toServer, "\n"+`{"jsonrpc":"2.0","id":"the last one","method":"ping"}`+"\n")
		}()
		answered := false
		for lines := bufio.NewReader(fromServer); !answered; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("the session ended with %v before it had answered", err)
			}
			if !json.Valid(line) {
				t.Fatalf("got a line that is no JSON: %q", line)
			}
			answered = idOf(line) == `"the last one"`
		}
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-served; err != nil {
			t.Fatalf("Serve: got %v, want nil", err)
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
