// Package servertest sends hostile messages to an MCP face, for the tests of all faces.
package servertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// requests are the requests of MCP. %s is replaced with a string.
var requests = []string{
	`"method":"resources/read","params":{"uri":%s}`,
	`"method":"resources/subscribe","params":{"uri":%s}`,
	`"method":"resources/list","params":{"cursor":%s}`,
	`"method":"resources/templates/list","params":{"cursor":%s}`,
	`"method":"tools/list","params":{"cursor":%s}`,
	`"method":"tools/call","params":{"name":%s,"arguments":{}}`,
	`"method":"tools/call","params":{"name":"run_code","arguments":{"language":%s,"code":"x"}}`,
	`"method":"tools/call","params":{"name":"x","arguments":{%s:1}}`,
	`"method":"prompts/list","params":{"cursor":%s}`,
	`"method":"prompts/get","params":{"name":%s}`,
	`"method":"prompts/get","params":{"name":"code_mode","arguments":{"task":%s}}`,
	`"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":%s},"argument":{"name":"a","value":"b"}}`,
	`"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":%s},"argument":{"name":"a","value":"b"}}`,
	`"method":"completion/complete","params":{"ref":{"type":%s},"argument":{"name":"a","value":"b"}}`,
	`"method":"logging/setLevel","params":{"level":%s}`,
	`"method":"ping","params":{"_meta":{%s:1}}`,
	`"method":"ping","params":{"_meta":{"progressToken":%s}}`,
	`"method":%s,"params":{}`,
	`"method":%s`,
	`"method":"ping",%s:1`,
}

// texts are strings that parsers, formatters and logs often mishandle.
var texts = []string{
	"", "\x00", "a\x00b", "\x07", "\x1b[31m", "\x7f", "\u0085", "\n", "\r\n", "\u2028", "\u202e", "\ufeff", "\ufffd",
	"\U0010ffff", "\\", `"`,
	"vfs://\x00", "vfs://a/mem/\x01", "audit://\x7f", "airlock://runs/\x00/a", "airlock://runs/\u202e", "://", "%",
	"%zz", "%00", "http://[::1", "file:///etc/passwd",
	"{}", "{{", "{+a}", "../../x", "$(x)", "'; DROP TABLE users; --", strings.Repeat("x", 100_000),
	strings.Repeat("\x00", 10_000), strings.Repeat("{", 5_000),
}

// Host is a host on stdio.
type Host struct {
	in    io.Writer
	lines *bufio.Reader
	asked int
}

// NewHost connects to a face in a revision of MCP.
func NewHost(t testing.TB, out io.Reader, in io.Writer, version string) *Host {
	t.Helper()
	h := &Host{in: in, lines: bufio.NewReader(out)}
	h.Ask(t, fmt.Sprintf(
		`"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"hostile","version":"1"}}`, version))
	h.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

func (h *Host) write(line string) { go io.WriteString(h.in, line+"\n") } // an error shows as a missing answer

// Ask sends a request with the members and returns the answer, which must be JSON with its ID.
func (h *Host) Ask(t testing.TB, members string) string {
	t.Helper()
	h.asked++
	h.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, h.asked, members))
	for {
		line, err := h.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%.200q has no answer: %v", members, err)
		}
		var answer struct {
			ID     json.Number     `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := strictjson.UnmarshalOpen([]byte(line), &answer); err != nil {
			t.Fatalf("%.200q: got %.200q, want JSON: %v", members, line, err)
		}
		if answer.Method != "" {
			continue // a notification
		}
		if answer.ID.String() != fmt.Sprint(h.asked) || (answer.Result == nil) == (answer.Error == nil) {
			t.Fatalf("%.200q: got %.200s, want a result or an error for request %d", members, line, h.asked)
		}
		return line
	}
}

// Hostile sends every request with every hostile string, and messages that are too long. The
// face must answer each, and must still serve its host afterwards.
func (h *Host) Hostile(t testing.TB) {
	t.Helper()
	for i := range requests {
		for _, text := range texts {
			h.Send(t, i, text)
		}
	}
	const tooLong = 17 << 20
	answer := h.Ask(t, `"method":"ping","params":{"_meta":{"x":"`+strings.Repeat("x", tooLong)+`"}}`)
	if !strings.Contains(answer, "the message has more than") {
		t.Errorf("a message of %d bytes: got %.200s, want that it is too long", tooLong, answer)
	}
	h.Ask(t, `"method":"ping"`)
}

// Send sends one of the requests with a string, for fuzzing, and then a ping.
func (h *Host) Send(t testing.TB, request int, text string) {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	members := fmt.Sprintf(requests[request%len(requests)], quoted)
	if text == "method" || text == "id" || text == "jsonrpc" || text == "params" ||
		strings.Contains(members, `"initialize"`) {
		return // it is another message then
	}
	h.Ask(t, members)
	h.Ask(t, `"method":"ping"`)
}

// Fuzz fuzzes the face that serve starts on two pipes.
func Fuzz(f *testing.F, serve func(t testing.TB) (out io.ReadCloser, in io.WriteCloser)) {
	for i, text := range texts {
		f.Add(i, text)
	}
	f.Fuzz(func(t *testing.T, request int, text string) {
		if request < 0 {
			return
		}
		out, in := serve(t)
		NewHost(t, out, in, "2025-11-25").Send(t, request, text)
	})
}

// LocalUser returns a server.Identify that accepts every request as the user whom Airlock runs for.
// Callers differ only in their protocol sessions: requests of revisions without sessions
// belong to one caller. It is for a loopback address that only that user's programs can reach.
func LocalUser(principal string) server.Identify {
	return func(*http.Request) (caller.Caller, error) {
		return caller.Caller{Principal: principal, Kind: caller.Local, Session: "loopback"}, nil
	}
}
