package code

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// posted sends a message over HTTP and returns the status and the answer, which must be JSON.
func posted(t *testing.T, url, version, body string) (status int, answer struct {
	ID    any
	Error struct {
		Code    int
		Message string
	}
}) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", version)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		t.Errorf("%.100s: got %.200s (%v), want JSON", body, raw, err)
	}
	return res.StatusCode, answer
}

// A message that is too large is refused with the ID of its request, wherever it stands.
func TestHTTPRefusesHugeBodies(t *testing.T) {
	url, _ := overHTTP(t)
	long := `"params":{"x":"` + strings.Repeat("x", server.MaxMessage) + `"}`
	for _, version := range []string{"", "2025-11-25", server.Stateless} {
		for body, id := range map[string]any{
			strings.Repeat(" ", server.MaxMessage+1):                    nil,
			`{"jsonrpc":"2.0","id":5,"method":"ping",` + long + `}`:     5.0,
			`{"jsonrpc":"2.0","method":"ping",` + long + `,"id":"end"}`: "end",
		} {
			status, got := posted(t, url, version, body)
			if status != http.StatusRequestEntityTooLarge || got.ID != id || got.Error.Code != -32600 ||
				!strings.Contains(got.Error.Message, "the message has more than") {
				t.Errorf("version %q: got %d %+v, want %d for request %v", version, status, got,
					http.StatusRequestEntityTooLarge, id)
			}
		}
	}
}

// A text that is not one strict JSON-RPC message is refused as on stdio. The SDK reads the first message and ignores
// what follows it, and its refusals have the names of Go types.
func TestHTTPRefusesWhatIsNotAMessage(t *testing.T) {
	url, _ := overHTTP(t)
	const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
	type refusal struct {
		body     string
		status   int
		code     int
		id       any
		contains string
	}
	refusals := []refusal{
		{"", 400, -32700, nil, "not JSON"},
		{"{", 400, -32700, nil, "not JSON"},
		{ping + "}", 400, -32700, nil, "not JSON"},
		{ping + ping, 400, -32700, nil, "not JSON"},
		{ping + "\n" + `{"jsonrpc":"2.0","method":"tools/call","id":6}`, 400, -32700, nil, "not JSON"},
		{"[]", 400, -32600, nil, "not a JSON-RPC"},
		{"[1]", 400, -32600, nil, "not a JSON-RPC"},
		{"1", 400, -32600, nil, "not a JSON-RPC"},
		{"null", 400, -32600, nil, "not a JSON-RPC"},
		{"{}", 400, -32600, nil, "not a JSON-RPC"},
		{`{"jsonrpc":"2.0","method":5}`, 400, -32600, nil, "not a JSON-RPC"},
		{`{"jsonrpc":"2.0","method":5,"id":5}`, 200, -32600, 5.0, "not a JSON-RPC"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600, nil, "not a JSON-RPC"},
		{`{"jsonrpc":"2.0","ID":5,"method":"ping"}`, 400, -32600, nil, "missing id"},
		{"[" + ping + "]", 400, -32600, nil, "batching"},
	}
	message := map[string]any{"jsonrpc": "2.0", "id": 5, "method": "ping"}
	for what, body := range servertest.Ambiguous(t, message) {
		if what != "an unknown member" && !strings.HasSuffix(what, "in another case") { // other members are ignored
			refusals = append(refusals, refusal{body, 0, 0, nil, ""})
		}
	}
	for _, version := range []string{"2025-11-25", server.Stateless} {
		for _, want := range refusals {
			status, got := posted(t, url, version, want.body)
			if got.Error.Code == 0 || got.Error.Message == "" || strings.Contains(got.Error.Message, "Go ") {
				t.Errorf("%s: %s: got %d %+v, want a refusal", version, want.body, status, got)
			}
			if want.status != 0 && (status != want.status || got.Error.Code != want.code || got.ID != want.id ||
				!strings.Contains(got.Error.Message, want.contains)) {
				t.Errorf("%s: %s: got %d %+v, want %+v", version, want.body, status, got, want)
			}
		}
	}
}
