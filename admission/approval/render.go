package approval

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Write writes a question as it must be shown to a person before they answer: everything the answer
// applies to, with control, invisible and look-alike characters made visible.
func Write(w io.Writer, q Question) error {
	_, err := io.WriteString(w, Text(q))
	return err
}

// Text returns the output of Write.
func Text(q Question) string { return render(q, whole) }

// Excerpt returns Text in at most n bytes. If the whole does not fit, long arguments are
// shortened, with their sizes, the digest of all arguments, and the command that shows the whole.
// The shortest form needs up to 4 KiB, so n should not be less.
func Excerpt(q Question, n int) string {
	text := Text(q)
	if len(text) <= n {
		return text
	}
	for _, c := range []cut{
		{text: 2000, items: 40, lines: 200, code: 20, field: 400},
		{text: 500, items: 12, lines: 80, code: 12, field: 300},
		{text: 160, items: 5, lines: 40, code: 8, field: 200}, {text: 60, items: 3, lines: 24, code: 4, field: 120},
		{text: 24, items: 2, lines: 12, code: 1, field: 60},
	} {
		if text = render(q, c); len(text) <= n {
			return text
		}
	}
	return render(q, cut{text: 12, items: 1, lines: 4, field: 40})
}

// Arguments returns the arguments of a question as Text shows them, in at most about n bytes. whole
// reports that they are complete.
func Arguments(q Question, n int) (text string, whole bool) {
	text = showArguments(q.Arguments, cut{})
	if len(text) <= n {
		return text, true
	}
	return showArguments(q.Arguments, cut{text: 500, items: 12, lines: 80}), false
}

// cut limits how much of a question is shown; 0 means no limit.
type cut struct {
	text  int // characters of one text among the arguments
	items int // of one list or object
	lines int // of the arguments
	code  int // lines of the code; 0 for none, unless everything is shown
	field int // characters of a field
}

// whole shows everything.
var whole = cut{}

func (c cut) isWhole() bool { return c == whole }

func render(q Question, c cut) string {
	var b strings.Builder
	renderHead(&b, q)
	field := func(name, value string) {
		if value == "" {
			return
		}
		shown := showName(value)
		if c.field > 0 {
			shown = truncate.Characters(shown, c.field)
		}
		fmt.Fprintf(&b, "  %-11s %s\n", name, shown)
	}
	field("server", q.ServerID)
	field("tool", q.ToolName)
	field("risk", q.Risk)
	for i, flag := range q.Flags {
		if c.items > 0 && i == c.items {
			field("flagged", fmt.Sprintf("and %d more times", len(q.Flags)-i))
			break
		}
		field("flagged", flag)
	}
	if caller.Kind(q.CallerKind) == caller.Contained {
		field("of server", q.Principal)
	} else {
		field("for", q.Principal)
	}
	field("vouched by", q.Issuer)
	field("asked by", strings.Join(q.Rules, "; "))
	field("asks", q.Whom())
	field("to allow", q.Cure)
	field("expires", q.Expires.UTC().Format(time.RFC3339))
	field("run", q.RunID)
	field("definition", q.DefinitionDigest)
	field("code", q.CodeHash)
	renderArguments(&b, q, c)
	renderCode(&b, q, c)
	return b.String()
}

// renderHead writes the heading of a question.
func renderHead(b *strings.Builder, q Question) {
	if q.Elicitation == nil {
		fmt.Fprintf(b, "May this call happen?  %s\n\n", visible.Text(q.ID))
		return
	}
	if q.Elicitation.SignIn {
		fmt.Fprintf(b, "Sign in to the server %s?  %s\n", showName(q.ServerID), visible.Text(q.ID))
		b.WriteString("A call of its tool waits for it, and goes on afterwards. Begin in a browser on this machine:\n")
		fmt.Fprintf(b, "%s\n\n", visible.Text(q.Elicitation.URL))
		return
	}
	fmt.Fprintf(b, "The server %s asks you, while a call of its tool is made.  %s\n", showName(q.ServerID),
		visible.Text(q.ID))
	b.WriteString("The question is the server's, and the answer goes to it. Give it no passwords, keys or codes.\n")
	if q.Elicitation.URL != "" {
		b.WriteString("It wants you to open an address. Airlock does not: open it yourself, if you trust the server " +
			"and the address.\n")
	}
	b.WriteString("\n")
}

// manyLines is the number of lines from which the size of the arguments is shown first.
const manyLines = 40

func renderArguments(b *strings.Builder, q Question, c cut) {
	what := "arguments"
	if q.Elicitation != nil {
		what = "the server's question"
	}
	if q.Elicitation != nil && q.Elicitation.SignIn {
		what = "where it leads"
	}
	shown := showArguments(q.Arguments, c)
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	size := fmt.Sprintf("%s bytes, %s", count(len(q.Arguments)), canon.Digest(q.Arguments))
	switch {
	case c.isWhole() && len(lines) <= manyLines:
		fmt.Fprintf(b, "\n%s, complete:\n", what)
	case c.isWhole():
		fmt.Fprintf(b, "\n%s, complete: %s lines, %s\n", what, count(len(lines)), size)
	default:
		fmt.Fprintf(b, "\n%s, SHORTENED: %s\n", what, size)
		fmt.Fprintf(b, "  to see all of them: airlock approvals show %s\n", visible.Word(q.ID))
	}
	for i, line := range lines {
		if c.lines > 0 && i == c.lines {
			fmt.Fprintf(b, "  … %s more lines …\n", count(len(lines)-i))
			return
		}
		b.WriteString("  " + line + "\n")
	}
}

// count formats a number with thousands separators.
func count(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
