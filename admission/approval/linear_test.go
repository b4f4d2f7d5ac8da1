package approval_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: a program chooses its code and the arguments of its calls. The cost of showing them to a person grows with
// their length and not faster.
func TestShowingIsLinear(t *testing.T) {
	quoted := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	shapes := map[string]func(unit string, n int) string{
		"one text": func(unit string, n int) string { return quoted(strings.Repeat(unit, n/len(unit))) },
		"a list of texts": func(unit string, n int) string {
			return "[" + strings.Repeat(quoted(unit)+",", n/(len(unit)+3)) + "1]"
		},
		"a list under a long name": func(unit string, n int) string {
			return "{" + quoted(strings.Repeat(unit, n/2/len(unit))) + ":[" + strings.Repeat("1,", n/4) + "1]}"
		},
		"lists in a list": func(unit string, n int) string {
			deep := strings.Repeat("[", 60) + quoted(unit) + strings.Repeat("]", 60) + ","
			return "[" + strings.Repeat(deep, n/len(deep)) + "1]"
		},
		"changes": func(unit string, n int) string {
			return "[" + strings.Repeat(`{"old":`+quoted(unit)+`,"new":"b"},`, n/(20+len(unit))) + "1]"
		},
	}
	functions := map[string]func(q approval.Question){
		"Text":      func(q approval.Question) { approval.Text(q) },
		"Excerpt":   func(q approval.Question) { approval.Excerpt(q, 8<<10) },
		"Arguments": func(q approval.Question) { approval.Arguments(q, 8<<10) },
		"Changes":   func(q approval.Question) { approval.Changes(q.Arguments) },
	}
	units := []string{"a", " ", "\n", "\\", `"`, "\u0301", "а", "\u202e", "\x00", "a а ", "delete_file(", "😀"}
	for shape, write := range shapes {
		for _, unit := range units {
			for name, show := range functions {
				testenv.Linear(t, name+" of "+shape+" of "+quoted(unit), 16<<10, func(n int) func() {
					q := question()
					q.Arguments = json.RawMessage(write(unit, n))
					q.Code = strings.Repeat(unit, n/len(unit))
					q.CodeHash = canon.Digest([]byte(q.Code))
					return func() { show(q) }
				})
			}
		}
	}
}
