package runs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/orchestrator"
)

func TestExitCodeOfARun(t *testing.T) {
	tests := []struct {
		name         string
		kind, source string // of the error; empty if the run succeeds
		want         int
	}{
		{"a result", "", "", verb.ExitDone},
		{"an exception", "KeyError", "code", verb.ExitFailed},
		{"policy denied a call", "PolicyDenied", "broker", verb.ExitRefused},
		{"a person denied a call", "ApprovalDenied", "broker", verb.ExitRefused},
		{"nobody answered", "ApprovalTimeout", "broker", verb.ExitRefused},
		{"an exception of that name", "PolicyDenied", "code", verb.ExitFailed},
		{"another error of the broker", "RateLimit", "broker", verb.ExitFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome := &orchestrator.Outcome{}
			if test.kind != "" {
				outcome.Envelope.Result.Error = &orchestrator.Failure{Type: test.kind, Source: test.source}
			}
			var out, stderr bytes.Buffer
			got := verb.ExitDone
			var exit verb.ExitError
			if err := (&Run{}).printOutcome(&verb.Streams{Out: &out, Err: &stderr}, outcome); errors.As(err, &exit) {
				got = int(exit)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got exit code %d, want %d", got, test.want)
			}
		})
	}
}
