package code

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/golden"
)

// A transcript under testdata/protocol is a recorded conversation. Lines that start with ">"
// are sent to the server. Lines that start with "<" are the expected messages of the server.
// The rest is commentary; the first line describes the test. -update rewrites the "<" lines.
func TestTranscripts(t *testing.T) {
	for _, file := range testdataFiles(t, "protocol/*.txt") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s, _ := newServer(t)
			r, w := serve(t, s)
			golden.Check(t, []byte(converse(t, readFile(t, file), r, w)), file)
		})
	}
}

// converse sends the host's lines of a transcript and returns the transcript with the actual
// messages of the server. After each line it waits for all answers that are due.
func converse(t *testing.T, transcript string, r io.Reader, w io.Writer) string {
	t.Helper()
	answers := bufio.NewReader(r)
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "<") {
			continue // written anew
		}
		out.WriteString(line)
		message, ours := strings.CutPrefix(line, "> ")
		if !ours {
			continue
		}
		send(t, w, strings.TrimSuffix(message, "\n"))
		if !answerDue(message) {
			continue
		}
		answer, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatalf("after %s: got %v, want an answer", message, err)
		}
		out.WriteString("< " + normalise(t, answer) + "\n")
	}
	return out.String()
}

// answerDue reports whether a line must be answered. Requests and invalid lines must be;
// notifications and blank lines must not.
func answerDue(line string) bool {
	if strings.TrimSpace(line) == "" {
		return false
	}
	var message map[string]any
	if err := json.Unmarshal([]byte(line), &message); err != nil {
		return !strings.HasPrefix(line, `[{"jsonrpc":"2.0","method"`) // a batch of one notification
	}
	_, request := message["id"]
	_, method := message["method"]
	return request || !method
}

// Patterns of values that differ between runs or are long.
var (
	madeID   = regexp.MustCompile(`run_[0-9a-f]{32}`)
	longText = regexp.MustCompile(`x{50,}`)
)

// normalise returns an answer with sorted keys and without long texts.
func normalise(t *testing.T, answer []byte) string {
	t.Helper()
	var message any // an object, or a list for a batch
	if err := json.Unmarshal(answer, &message); err != nil {
		t.Fatalf("got a line that is no JSON: %s", answer)
	}
	object, _ := message.(map[string]any)
	if result, ok := object["result"].(map[string]any); ok {
		if text, ok := result["instructions"].(string); ok && strings.HasPrefix(text, "Airlock runs programs") {
			result["instructions"] = "(the instructions)"
		}
	}
	if list, ok := message.([]any); ok { // in any order (JSON-RPC 2.0, section 6)
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	out, err := server.Encode(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(longText.ReplaceAll(madeID.ReplaceAll(out, []byte("run_(made)")), []byte("x…"))))
}
