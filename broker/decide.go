package broker

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/policies"
)

// decide evaluates the rules for all callers and those about agents.
func (a *attempt) decide(ctx context.Context) *failure {
	a.engine = a.rules.Policies
	a.ruling = a.engine.Decide(policies.Request{
		Principal: a.run.identity.Caller.Name(),
		Tool:      a.tool,
		Settings:  a.settings,
		Input:     a.input,
		Session:   a.before,
	})
	if fail := a.decideAgent(ctx); fail != nil || a.ruling.Allow {
		return fail
	}
	f := failf(errortype.PolicyDenied, "policy does not allow this call: %s. Do not retry it; ask the user", a.withoutPaths(strings.Join(a.ruling.Reasons, "; ")))
	f.detail = strings.Join(append(a.ruling.Reasons, a.ruling.Errors...), "; ")
	return f
}

// withoutPaths replaces the paths of rule files by their last element, because code in a sandbox
// does not need to know paths of the host. The record contains the full paths.
func (a *attempt) withoutPaths(text string) string {
	for _, r := range a.ruling.Rules {
		if directory, base := filepath.Split(r.File); directory != "" {
			text = strings.ReplaceAll(text, r.File, base)
		}
	}
	return text
}
