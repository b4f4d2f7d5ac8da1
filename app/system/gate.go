package system

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/redact"
)

// gate redacts everything that leaves Airlock other than through a run: its log, its notices, and
// the problems and tool definitions of servers. Definitions keep personal data, because only the
// author of a server can have put it there.
type gate struct {
	all         *redact.Redactor // logs, notices, reasons
	definitions *redact.Redactor // only credentials and secrets
}

func newGate() *gate {
	all := redact.New()
	return &gate{all, all.With(redact.Personal{All: redact.Choices{
		"email": redact.Keep, "phone": redact.Keep, "card": redact.Keep, "iban": redact.Keep, "us-ssn": redact.Keep,
		"ip-address": redact.Keep,
	}})}
}

// options returns o with a logger and a Notify function that redact.
func (g *gate) options(o Options) Options {
	notify := o.Notify
	o.Logger = slog.New(g.all.Handler(o.Logger.Handler()))
	o.Notify = func(n Notice) {
		n.Text, n.Hint = g.all.Text(n.Text), g.all.Text(n.Hint)
		notify(n)
	}
	return o
}

// servers returns a redacted copy of the list: problems, warnings and the definitions of tools. The
// digests of the tools stay those of the original definitions.
func (g *gate) servers(list []catalog.Server) []catalog.Server {
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		s.Problem, s.Unreachable = g.all.Text(s.Problem), g.all.Text(s.Unreachable)
		s.Warnings = slices.Clone(s.Warnings)
		for j := range s.Warnings {
			s.Warnings[j] = g.all.Text(s.Warnings[j])
		}
		for _, list := range []*[]catalog.Tool{&s.Tools, &s.Features} {
			*list = slices.DeleteFunc(slices.Clone(*list), func(t catalog.Tool) bool {
				isSecret := g.definitions.Text(t.Name) != t.Name // a name cannot be changed
				if isSecret {
					s.Warnings = append(s.Warnings, "a tool was left out, because there is a secret in its name")
				}
				return isSecret
			})
			for j := range *list {
				g.tool(&(*list)[j])
			}
		}
	}
	return list
}

func (g *gate) tool(t *catalog.Tool) {
	if cleaned, err := g.definitions.JSONTexts(t.Raw); err != nil || bytes.Equal(cleaned, t.Raw) {
		return // then the parts have no secrets either
	}
	t.Title, t.Description = g.definitions.Text(t.Title), g.definitions.Text(t.Description)
	t.Annotations.Title = g.definitions.Text(t.Annotations.Title)
	for _, part := range []*[]byte{(*[]byte)(&t.Raw), (*[]byte)(&t.InputSchema), (*[]byte)(&t.OutputSchema)} {
		if len(*part) == 0 {
			continue
		}
		if cleaned, err := g.definitions.JSONTexts(*part); err == nil {
			*part = cleaned
		}
	}
}

// Gate returns the redactor for messages between the system and its host.
func (s *System) Gate() *Gate { return &Gate{s.opts.gate.definitions} }

// Gate removes secrets, and paths of the host from Airlock's own messages. It leaves personal data:
// the results of a run were redacted before, as the operator configured it.
type Gate struct{ redactor *redact.Redactor }

// Text removes secrets from a text.
func (g *Gate) Text(text string) string { return g.redactor.Text(text) }

// JSON removes secrets from the texts of a JSON value. If raw is not JSON, the result is null.
func (g *Gate) JSON(raw json.RawMessage) json.RawMessage {
	cleaned, err := g.redactor.JSONTexts(raw)
	if err != nil {
		return json.RawMessage("null")
	}
	return cleaned
}

// Sentence is Text for Airlock's own messages. It also removes paths of the host.
func (g *Gate) Sentence(text string) string { return withoutHostPaths(g.Text(text)) }

// Sentence removes secrets and paths of the host from the message that Airlock returns instead of
// the result of a run.
func Sentence(text string) string { return withoutHostPaths(printed.Text(text)) }

// hostPath is an absolute path, or one under the user's own directory.
var hostPath = lazyregexp.New(`(^|[\s"'(=:])((?:/[\w.@+~-]+){2,}/?|[A-Za-z]:\\[^\s"']+)`)

// withoutHostPaths replaces absolute paths that exist on this host, or are in a directory of the
// user, by their last element.
func withoutHostPaths(text string) string {
	home, _ := os.UserHomeDir()
	return hostPath.ReplaceAllStringFunc(text, func(match string) string {
		m := hostPath.FindStringSubmatch(match)
		path := m[2]
		isOurs := home != "" && home != "/" && strings.HasPrefix(path, home)
		for parent := path; !isOurs && strings.Count(
			parent, "/") > 1; parent = parent[:strings.LastIndexByte(parent, '/')] {
			_, err := os.Lstat(parent)
			isOurs = err == nil
		}
		if !isOurs {
			return match
		}
		return m[1] + "[host path]" + path[strings.LastIndexAny(strings.TrimRight(path, "/"), `/\`):]
	})
}
