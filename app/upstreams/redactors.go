package upstreams

import (
	"bytes"
	"slices"

	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/redact"
)

// Redactors redact everything that leaves Airlock other than through a run: its log, its notices, and
// the problems and tool definitions of servers. Definitions keep personal data, because only the
// author of a server can have put it there.
type Redactors struct {
	All         *redact.Redactor // logs, notices, reasons
	Definitions *redact.Redactor // only credentials and secrets
}

// NewRedactors returns redactors that hold no credentials.
func NewRedactors() *Redactors {
	all := redact.New()
	return &Redactors{all, all.With(credentials.PersonalKept())}
}

// servers returns a redacted copy of the list: problems, warnings and the definitions of tools. The
// digests of the tools stay those of the original definitions.
func (r *Redactors) servers(list []catalog.Server) []catalog.Server {
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		s.Problem, s.Unreachable = r.All.Text(s.Problem), r.All.Text(s.Unreachable)
		s.Warnings = slices.Clone(s.Warnings)
		for j := range s.Warnings {
			s.Warnings[j] = r.All.Text(s.Warnings[j])
		}
		for _, list := range []*[]catalog.Tool{&s.Tools, &s.Features} {
			*list = slices.DeleteFunc(slices.Clone(*list), func(t catalog.Tool) bool {
				isSecret := r.Definitions.Text(t.Name) != t.Name // a name cannot be changed
				if isSecret {
					s.Warnings = append(s.Warnings, "a tool was left out, because there is a secret in its name")
				}
				return isSecret
			})
			for j := range *list {
				r.tool(&(*list)[j])
			}
		}
	}
	return list
}

func (r *Redactors) tool(t *catalog.Tool) {
	if cleaned, err := r.Definitions.JSONTexts(t.Raw); err != nil || bytes.Equal(cleaned, t.Raw) {
		return // then the parts have no secrets either
	}
	t.Title, t.Description = r.Definitions.Text(t.Title), r.Definitions.Text(t.Description)
	t.Annotations.Title = r.Definitions.Text(t.Annotations.Title)
	for _, part := range []*[]byte{(*[]byte)(&t.Raw), (*[]byte)(&t.InputSchema), (*[]byte)(&t.OutputSchema)} {
		if len(*part) == 0 {
			continue
		}
		if cleaned, err := r.Definitions.JSONTexts(*part); err == nil {
			*part = cleaned
		}
	}
}
