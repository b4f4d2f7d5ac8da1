package code

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// addTranscripts seeds a fuzz test with the messages of the hosts in the transcripts.
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

// For any input of a host, every line of the output is JSON, and the session still answers
// afterwards.
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
			var answer struct{ ID any }
			if err := json.Unmarshal(line, &answer); err == nil {
				answered = answer.ID == "the last one"
			}
		}
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-served; err != nil {
			t.Fatalf("Serve: got %v, want nil", err)
		}
	})
}
