package server

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHeadOf(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	tests := []struct{ message, id, next string }{
		{`{"jsonrpc":"2.0","id":7,"result":{"id":8,"method":"x"}}`, "7", "result"},
		{`{"jsonrpc":"2.0","id":"a","error":{"code":0,"message":"m"}}`, "a", "error"},
		{`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`, "1", "method"},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}`, "", "method"},
		{`{"jsonrpc":"2.0","id":1,"result":"` + long + `"}`, "1", "result"},
		{`[1]`, "", ""}, {`{`, "", ""}, {`{"id":{}}`, "", ""}, {``, "", ""},
	}
	for _, test := range tests {
		h := headOf([]byte(test.message))
		var id string
		if h.id.IsValid() {
			raw, err := json.Marshal(h.id.Raw())
			if err != nil {
				t.Fatal(err)
			}
			id = strings.Trim(string(raw), `"`)
		}
		if id != test.id || h.next != test.next {
			t.Errorf("%.60s: got %q and %q, want %q and %q", test.message, id, h.next, test.id, test.next)
		}
	}
}
