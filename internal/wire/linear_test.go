package wire_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// Issue 23: the cost of reading a request of a program grows with its length and not faster.
func TestReadingRequestsIsLinear(t *testing.T) {
	testenv.LinearTexts(t, testenv.Repetitions, 32<<10, map[string]func(string){
		"a frame": func(s string) { _, _ = wire.ParseRequest([]byte(s)) },
		"params": func(s string) {
			_, _ = wire.ParseRequest(
				[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"` + s + `"}}`))
		},
		"an ID": func(s string) {
			_, _ = wire.ParseRequest([]byte(`{"jsonrpc":"2.0","id":"` + s + `","method":"x"}`))
		},
	})
}
