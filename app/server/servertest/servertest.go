// Package servertest sends hostile messages to an MCP face, for the tests of all faces.
package servertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
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
	`"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":%s},"argument":{"name":"a",` +
		`"value":"b"}}`,
	`"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":%s},"argument":{"name":"a",` +
		`"value":"b"}}`,
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
		`"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"hostile",`+
			`"version":"1"}}`, version))
	h.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

func (h *Host) write(line string) { go io.WriteString(h.in, line+"\n") } // an error shows as a missing answer

// Ask sends a request with the members and returns the answer, which must be JSON with its ID.
func (h *Host) Ask(t testing.TB, members string) string {
	t.Helper()
	return h.ask(t, members, false)
}

// ask is Ask. If broken is set, the message need not be JSON, and an error without an ID answers it.
func (h *Host) ask(t testing.TB, members string, broken bool) string {
	t.Helper()
	h.asked++
	h.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, h.asked, members))
	for {
		line, err := h.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%.200q has no answer: %v", members, err)
		}
		var answer struct {
			ID     *json.Number    `json:"id"`
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
		if broken && answer.ID == nil && answer.Error != nil {
			return line
		}
		if answer.ID == nil || answer.ID.String() != fmt.Sprint(h.asked) ||
			(answer.Result == nil) == (answer.Error == nil) {
			t.Fatalf("%.200q: got %.200s, want a result or an error for request %d", members, line, h.asked)
		}
		return line
	}
}

// Hostile sends every request with every hostile string, every argument of every tool likewise, and
// messages that are too deep or too long. The face must answer each, and must still serve its host
// afterwards.
func (h *Host) Hostile(t testing.TB) {
	t.Helper()
	for i := range requests {
		for _, text := range texts {
			h.Send(t, i, text)
		}
		for _, raw := range values {
			h.Ask(t, fmt.Sprintf(requests[i], raw))
		}
	}
	h.hostileArguments(t)
	h.Strict(t)
	message := func(size int) string { // which has size bytes
		const empty = `"method":"ping","params":{"_meta":{"x":""}}`
		frame := len(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, h.asked+1, empty))
		return strings.Replace(empty, `""`, `"`+strings.Repeat("x", size-frame)+`"`, 1)
	}
	for _, size := range []int{server.MaxMessage - 1, server.MaxMessage, server.MaxMessage + 1, 17 << 20} {
		answer := h.Ask(t, message(size))
		if tooLong := strings.Contains(answer, "the message has more than"); tooLong != (size > server.MaxMessage) {
			t.Errorf("a message of %d bytes: got %.200s", size, answer)
		}
	}
	h.Ask(t, `"method":"ping"`)
}

// values are JSON values that decoders read differently or that exceed limits of their depth.
var values = []string{
	`"\ud800"`, `"\udc00x"`, `"\ud83d\ud83d\ude00"`, `"\u0000"`, "\"\x7f\"",
	`"` + strings.Repeat(`\ud800`, 5_000) + `"`, `"` + strings.Repeat(`\"`, 50_000) + `"`,
}

// deep are values that are nested deeply.
var deep = []string{
	strings.Repeat("[", 900) + strings.Repeat("]", 900), strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
	strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), strings.Repeat("9", 100_000), "1e999999999",
	"null", "true", "[]", "{}", `[null]`, `{"":null}`, "-0", `[[[["\ud800"]]]]`,
}

// tool is a tool as a face lists it.
type tool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Properties           map[string]property `json:"properties"`
		Required             []string            `json:"required"`
		AdditionalProperties any                 `json:"additionalProperties"`
	} `json:"inputSchema"`
}

// property is the schema of an argument.
type property struct {
	Type any   `json:"type"`
	Enum []any `json:"enum"`
}

// example returns a value that conforms to the schema.
func (p property) example() any {
	switch {
	case len(p.Enum) > 0:
		return p.Enum[0]
	case p.Type == "object":
		return map[string]any{}
	case p.Type == "array":
		return []any{}
	case p.Type == "integer", p.Type == "number":
		return 1
	case p.Type == "boolean":
		return true
	}
	return "x"
}

func (h *Host) tools(t testing.TB) []tool {
	t.Helper()
	var listed struct {
		Result struct {
			Tools []tool `json:"tools"`
		} `json:"result"`
	}
	if err := strictjson.UnmarshalOpen([]byte(h.Ask(t, `"method":"tools/list","params":{}`)), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed.Result.Tools) == 0 {
		t.Fatal("the face has no tools")
	}
	return listed.Result.Tools
}

// hostileArguments calls each tool with one hostile argument beside arguments that its schema
// accepts. Arguments with a program to run are left out.
func (h *Host) hostileArguments(t testing.TB) {
	t.Helper()
	var hostile []string
	for _, text := range slices.Concat(texts[:8], texts[len(texts)-3:]) { // refused calls of one account are delayed
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		hostile = append(hostile, string(quoted))
	}
	for _, tool := range h.tools(t) {
		for attacked := range tool.InputSchema.Properties {
			if attacked == "code" || attacked == "language" {
				continue
			}
			others := map[string]any{}
			for _, name := range tool.InputSchema.Required {
				if name != attacked {
					others[name] = tool.InputSchema.Properties[name].example()
				}
			}
			frame, err := json.Marshal(others)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range slices.Concat(hostile, values, deep) {
				separator := ","
				if len(others) == 0 {
					separator = ""
				}
				h.Ask(t, fmt.Sprintf(`"method":"tools/call","params":{"name":%q,"arguments":%s%s%q:%s}}`, tool.Name,
					strings.TrimSuffix(string(frame), "}"), separator, attacked, value))
			}
			h.Ask(t, `"method":"ping"`)
		}
	}
}

// Program starts a program that serves a face on stdio, sends it hostile messages, and expects that it
// ends without an error when its input ends.
func Program(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // it has ended unless the test has failed
	NewHost(t, out, in, "2025-11-25").Hostile(t)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end of its input: got %v, want nil", err)
	}
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

// LocalUser returns a server.Identify that accepts every request as the user who runs Airlock.
// Callers differ only in their protocol sessions: requests of revisions without sessions
// belong to one caller. It is for a loopback address that only that user's programs can reach.
func LocalUser(principal string) server.Identify {
	return func(*http.Request) (caller.Caller, error) {
		return caller.Caller{Principal: principal, Kind: caller.Local, Session: "loopback"}, nil
	}
}
