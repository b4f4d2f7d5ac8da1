package escape_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/orchestrator"
)

// output is everything that comes out of a sandbox.
type output struct {
	kind   string          // wantNothing, or the type of the error
	source string          // who found the error
	data   json.RawMessage // the result, when there is one
	texts  map[string]string
	called []string // names of the tools that were called
}

// out collects what came out of a run.
func out(outcome *orchestrator.Outcome, calls []call) (output, error) {
	line, err := outcome.Envelope.Line()
	if err != nil {
		return output{}, err
	}
	o := output{kind: wantNothing, data: outcome.Envelope.Result.Data, texts: map[string]string{
		"the envelope": string(line), "stdout": outcome.Stdout, "stderr": outcome.Stderr,
	}}
	if e := outcome.Envelope.Result.Error; e != nil {
		o.kind, o.source = e.Type, e.Source
	}
	for i, call := range calls {
		o.called = append(o.called, call.name)
		o.texts[fmt.Sprintf("the arguments of call %d", i+1)] = call.arguments
	}
	return o, nil
}

// oracle decides whether an attack has failed.
type oracle struct {
	secrets map[string]string // what must not come out, by what it is
	touched []string          // bait that was contacted
}

// gains lists what an attack has reached, in words; nothing is what we want.
func (o oracle) gains(got output) []string {
	var gains []string
	for what, secret := range o.secrets {
		for where, text := range got.texts {
			if strings.Contains(text, secret) {
				gains = append(gains, fmt.Sprintf("%s came out in %s", what, where))
			}
		}
	}
	for _, place := range o.touched {
		gains = append(gains, fmt.Sprintf("something reached %s on the host", place))
	}
	if slices.Contains(got.called, forbidden) {
		gains = append(gains, "a tool was called that policy denies")
	}
	var claims []string
	if got.kind == wantNothing && json.Unmarshal(got.data, &claims) == nil {
		gains = append(gains, claims...)
	}
	slices.Sort(gains)
	return gains
}

// tried reports whether a program that ran to its end has tried anything at
// all: attacks print a line for each thing that was refused or that they found
// to be harmless, and their result is a list.
func tried(got output) error {
	var claims []string
	if err := json.Unmarshal(got.data, &claims); err != nil || claims == nil {
		return fmt.Errorf("the attack is broken: its result is %.100s, want a list of what it reached", got.data)
	}
	for _, word := range []string{"refused: ", "harmless: "} {
		if strings.HasPrefix(got.texts["stdout"], word) || strings.Contains(got.texts["stdout"], "\n"+word) {
			return nil
		}
	}
	return fmt.Errorf("the attack is broken: it says of nothing that it was refused or harmless")
}
