package verb

import (
	"bytes"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the cost of text for a terminal grows with its length and not faster.
func TestTextForATerminalIsLinear(t *testing.T) {
	testenv.LinearTexts(t, testenv.Repetitions, 64<<10, map[string]func(string){
		"Wrapped": func(s string) { Wrapped(s, 80) },
		"OneLine": func(s string) { OneLine(s, 80) },
		"Table": func(s string) {
			var table Table
			for row := range strings.SplitSeq(s, "a") {
				table.Add(Text(row, Plain), Text(s[:min(len(s), 100)], Red))
			}
			_ = table.Write(&bytes.Buffer{})
		},
	})
}
