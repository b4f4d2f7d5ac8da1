package upstream

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the cost of reading what a server prints and answers grows with its length and not faster.
func TestReadingAServerIsLinear(t *testing.T) {
	config := Config{Env: map[string]string{"TOKEN": "abcdefgh"},
		Headers: map[string]string{"Authorization": "Bearer aaaaaaaa"}}
	units := append([]string{"      a\n", "× a\n      b\n", "data: {}\n\n", "data: 1\n", "id: 1\n", "Error: a\n",
		"/usr/lib/a ",
		`{"id":1,"result":1}` + "\n", "caused by: a\n", "aaaaaaaa "}, testenv.Repetitions...)
	testenv.LinearTexts(t, units, 32<<10, map[string]func(string){
		"causeOf":    func(s string) { causeOf(strings.Split(s, "\n")) },
		"hide":       func(s string) { config.hide(s) },
		"conceal":    func(s string) { config.conceal(s) },
		"splitArray": func(s string) { splitArray([]byte("[" + s + "]")) },
		"splitDeep":  func(s string) { splitDeep([]byte("[" + s + "]")) },
		"idScanner":  func(s string) { (&idScanner{}).write([]byte(`{"result":"` + s)) },
		"plainResponse": func(s string) {
			plainResponse([]byte(`{"jsonrpc":"2.0","id":7,"result":{"a":"` + s + `"}}`))
		},
		"lines": func(s string) {
			reader := newLineReader(strings.NewReader(s), len(s)/2)
			for {
				if _, err := reader.next(); err != nil {
					return
				}
			}
		},
		"events": func(s string) {
			_, _ = io.Copy(io.Discard, newEventFilter(io.NopCloser(strings.NewReader(s)), jsonrpc.ID{}, newTap(),
				&skipped{log: slog.New(slog.DiscardHandler)}))
		},
	})
}
