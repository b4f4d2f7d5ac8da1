package cli

import (
	"strings"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// oneLine folds white space and control characters and cuts text to at most
// limit characters, for a table's cell.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' }), " ")
	return truncate.Characters(text, limit)
}
