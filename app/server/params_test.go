package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The refusal of malformed params repeated the names of members, which may be secrets (issue 23). It
// names those that can be of the protocol only.
func TestRefusedParamsDoNotRepeatNames(t *testing.T) {
	const secret = "sk-live-51H8x"
	for _, test := range []struct{ params, want string }{
		{`{"name":1}`, `"name" is a number`},
		{`{"name":"x","_meta":[]}`, `"_meta"`},
		{fmt.Sprintf(`{"name":"x","_meta":{%q:1,%q:2}}`, secret, secret), "a member"},
		{fmt.Sprintf(`{"name":"x","arguments":{},"requestState":{%q:1}}`, secret), "requestState"},
		{fmt.Sprintf(`{"name":"x","_meta":{"a\"%s":1,"a\"%s":1}}`, secret, secret), "a member"},
		{fmt.Sprintf(`{"name":"x","inputResponses":{%q:7}}`, secret), ""},
	} {
		message, err := jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` +
			test.params + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(string(misshapen(message)), `\"`, `"`)
		if strings.Contains(got, secret) || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s, want %q and no name of the client", test.params, got, test.want)
		}
	}
}

// A method that a revision does not have is unknown there with any params (MCP 2026-07-28).
func TestRemovedMethodsHaveNoParams(t *testing.T) {
	for _, method := range removedMethods {
		for meta, refused := range map[string]bool{`{}`: true,
			`{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}`: true,
			`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`: false} {
			got := misshapen(&jsonrpc.Request{ID: newID(t), Method: method, Params: []byte(`{"_meta":` + meta + `}`)})
			if (got != nil) != refused {
				t.Errorf("%s with %s: got %s, want a refusal: %t", method, meta, got, refused)
			}
		}
	}
}
