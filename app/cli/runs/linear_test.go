package runs

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the cost of showing a run to a person grows with its length and not faster.
func TestShowingARunIsLinear(t *testing.T) {
	show := func(result orchestrator.Result, printed string) {
		line, err := json.Marshal(orchestrator.Envelope{Result: result})
		if err != nil {
			t.Fatal(err)
		}
		_ = showOutcome(&bytes.Buffer{}, line, printed)
	}
	data := func(value any) json.RawMessage {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	testenv.LinearTexts(t, testenv.Repetitions, 32<<10, map[string]func(string){
		"a text": func(s string) { show(orchestrator.Result{OK: true, Data: data(s)}, "") },
		"a list": func(s string) { show(orchestrator.Result{OK: true, Data: data([]string{s, s})}, "") },
		"an error": func(s string) {
			show(orchestrator.Result{Error: &orchestrator.Failure{Type: "E", Message: s, Traceback: s + "x"}}, s)
		},
		"lines": func(s string) { _ = lines(s) },
	})
}
