package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A call is forwarded with its request ID, which replaces a value of the host. All other messages
// are forwarded unchanged.
func TestCallsAreNamed(t *testing.T) {
	deep := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` +
		strings.Repeat(`{"a":`, 20_000) + strings.Repeat(`}`, 20_000) + `}`
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}`:                              `7`,
		`{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"a"}}`:                            `7`,
		`{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"a","arguments":{"code":"<&>"}}}`: `"7"`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"a","_meta":{"x":1,` +
			`"io.github.airlock-mcp/request":"\"forged\""}}}`: `"a"`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":5}}}`: `1`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`:                                       ``,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`:                                       ``,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`:                                     ``,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":[]}}`:                  ``,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                                             ``,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}]`:                                     ``,
		`{`: ``, ``: ``, deep: ``,
	} {
		got := named([]byte(message))
		if want == "" {
			if !bytes.Equal(got, []byte(message)) {
				t.Errorf("%.100s: got %.200s, want it unchanged", message, got)
			}
			continue
		}
		var call struct {
			ID     any
			Params struct {
				Meta      mcp.Meta `json:"_meta"`
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal(got, &call); err != nil || RequestID(call.Params.Meta) != want {
			t.Errorf("%s: got %s and %v, want the ID %s", message, got, err, want)
		}
		if strings.Contains(message, "progressToken") && call.Params.Meta["progressToken"] != 5.0 {
			t.Errorf("%s: got %s, want what else is in _meta kept", message, got)
		}
	}
	if got := RequestID(mcp.Meta{requestKey: 7}); got != "" {
		t.Errorf("got %q for what is no text", got)
	}
}

func TestAnnouncementsAreBounded(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "  host 1 ": "host 1", "a\x00b": `a\u{0}b`, "a\xffb": "ab", "a\u202eb": `a\u{202e}b`,
	} {
		if got := Announcement(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Announcement(strings.Repeat("é", 10_000)); len(got) > 4*maxAnnounced {
		t.Errorf("got %d bytes, want them bounded", len(got))
	}
}
