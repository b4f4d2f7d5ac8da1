package code

import (
	"encoding/json"
	"testing"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 23: the cost of an answer grows with the result, the error and the output of a run and not faster.
func TestAnswersAreLinear(t *testing.T) {
	outcome := func(result orchestrator.Result, printed string) *orchestrator.Outcome {
		return &orchestrator.Outcome{Envelope: orchestrator.Envelope{Result: result},
			Printed: orchestrator.Printed{Stdout: printed, Stderr: printed}}
	}
	testenv.LinearTexts(t, testenv.Repetitions, 64<<10, map[string]func(string){
		"cut":  func(s string) { cut(s) },
		"tail": func(s string) { tail(s, len(s)/2) },
		"end":  func(s string) { end(s, len(s)-1) },
		"a result": func(s string) {
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			o := outcome(orchestrator.Result{OK: true, Data: data}, s+string(data)+s)
			withoutResult(o)
			resultText(o.Envelope.Result)
		},
		"an error": func(s string) {
			o := outcome(orchestrator.Result{Error: &orchestrator.Failure{Type: "E", Message: s, Traceback: s}}, s+s)
			withoutResult(o)
			resultText(o.Envelope.Result)
		},
	})
}
