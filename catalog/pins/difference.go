package pins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// shortDigest is how many hex digits of a definition's digest are shown and accepted as its name.
// They are 64 bits, too many to find a second definition with the same digits.
const shortDigest = 16

// ShortDigest returns the first digits of a definition's digest, for people.
func ShortDigest(p Pin) string { return strings.TrimPrefix(p.Digest, "sha256:")[:shortDigest] }

// Difference returns a change as a unified diff for people, with the digest of the new definition.
// All of its characters are printable ASCII.
func Difference(c Change) []byte {
	name := fmt.Sprintf("%s %s", c.ServerID, catalog.Quote(c.ToolName))
	if c.IsNew() {
		return diff.Diff(name+" not seen yet", nil, name+" now, digest "+ShortDigest(c.Found),
			printable(c.Found.Definition))
	}
	return diff.Diff(name+" seen "+c.Pinned.Since.Format(time.RFC3339), printable(c.Pinned.Definition),
		name+" now, digest "+ShortDigest(c.Found), printable(c.Found.Definition))
}

// printable formats a definition with one member on each line. It escapes every character that is
// not printable ASCII, because a person compares the result and nothing may be hidden in it.
func printable(definition json.RawMessage) []byte {
	text, err := canon.Pretty(definition)
	if err != nil {
		text = string(definition)
	}
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		quoted := fmt.Sprintf("%+q", strings.TrimSuffix(line, "\n"))
		out.WriteString(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// ShownDigest returns a digest of definitions that a person was shown, and of the names of their tools.
func ShownDigest(changes []Change) string {
	var shown []byte
	for _, c := range changes {
		shown = fmt.Appendf(shown, "%q %q %s\n", c.ServerID, c.ToolName, c.Found.Digest)
	}
	return canon.Digest(shown)
}
