package credentials

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/redact"
)

// Gate removes secrets, and paths of the host from Airlock's own messages. It leaves personal data:
// the results of a run were redacted before, as the operator configured it.
type Gate struct{ redactor *redact.Redactor }

// NewGate returns a gate with a redactor that keeps personal data.
func NewGate(redactor *redact.Redactor) *Gate { return &Gate{redactor} }

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

// Sentence removes secrets and paths of the host from a message of Airlock itself, such as an error.
func (g *Gate) Sentence(text string) string { return withoutHostPaths(g.Text(text)) }

// Sentence removes secrets and paths of the host from the message that Airlock returns instead of
// the result of a run.
func Sentence(text string) string { return withoutHostPaths(Printed().Text(text)) }

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
