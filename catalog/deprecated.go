package catalog

import (
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// deprecation matches a description that marks the tool itself as deprecated: as a label
// ("[Deprecated]", "DEPRECATED:") or in a sentence whose subject is the tool. It does not
// match tools that deal with deprecated things.
var deprecation = lazyregexp.New(`DEPRECATED\b|(?i)` +
	`^\s*\W?(deprecated|obsolete)\b\W?\s*([:.,;)\]-]|$|use\b|in favou?r)|` +
	`[(\[](deprecated|obsolete)\b[^)\]]*[)\]]|` +
	`\b(this|the) (tool|function|method|command|endpoint|operation|action|api) (is|was|has been) (now ` +
	`)?(deprecated|obsolete|superseded)\b|(^|[.!\n]\s*)(it )?(is|was|has been) (now )?(deprecated|obsolete)\b|` +
	`\bdeprecated (in favou?r of|and will be removed|since (v|version)?\d)|\bdeprecated[:;,.] (please )?use\b`)

// isDeprecated reports whether a tool's title or description marks it as deprecated.
func isDeprecated(title, description string) bool {
	return deprecation.MatchString(title) || deprecation.MatchString(description)
}
