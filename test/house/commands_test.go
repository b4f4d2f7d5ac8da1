package house_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// unfinishedCommand matches the end of a text that a word of a command follows.
	unfinishedCommand = regexp.MustCompile("\\b(?:airlock [a-z]+(?: [^\"`;:,()\n]*)?|" +
		"chmod [a-z-]+|mv|install -m 600) $")
	// formatVerb matches a verb of a format, with the text before it.
	formatVerb = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-zA-Z%]`)
	// ownWord matches expressions whose words Airlock makes itself: IDs of runs and questions, and fixed names.
	ownWord = regexp.MustCompile(`^(visible\.Word\(.*|.*\b[rR]unID|(q|run|tree)\.ID|definition\.Name|` +
		`strings\.Join\((failed|flags), " "\))$`)
)

// A command that a message tells a person to type quotes the names in it: they can have spaces and characters that a
// shell interprets (issue 27).
func TestCommandsInMessagesQuoteTheirWords(t *testing.T) {
	found := 0
	check := func(f file, before string, word ast.Expr) {
		if !unfinishedCommand.MatchString(before) {
			return
		}
		found++
		if text := types.ExprString(word); !ownWord.MatchString(text) {
			t.Errorf("%s: the command %q is followed by %s: use visible.Word", f.at(word),
				unfinishedCommand.FindString(before), text)
		}
	}
	for _, f := range project(t) {
		if f.isTest || strings.HasPrefix(f.path, "test/") ||
			f.path == "catalog/embedding/cache.go" { // "airlock vectors" is not a command
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.BinaryExpr:
				before := ""
				for _, operand := range operands(node) {
					if text, constant := constantText(operand); constant {
						before += text
						continue
					}
					check(f, before, operand)
					before += "WORD"
				}
				return false
			case *ast.CallExpr:
				for i, argument := range node.Args {
					text, constant := constantText(argument)
					if !constant {
						continue
					}
					n := i
					for _, at := range formatVerb.FindAllStringIndex(text, -1) {
						if text[at[0]:at[1]] == "%%" {
							continue
						}
						if n++; n < len(node.Args) {
							check(f, text[:at[0]], node.Args[n])
						}
					}
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("found %d commands in messages: the rule would check next to nothing", found)
	}
}

// operands returns the operands of a chain of additions.
func operands(e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		return append(operands(b.X), operands(b.Y)...)
	}
	return []ast.Expr{e}
}

// constantText returns the text of a string literal, or of literals that are added.
func constantText(e ast.Expr) (string, bool) {
	text := ""
	for _, operand := range operands(e) {
		literal, ok := operand.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return "", false
		}
		part, err := strconv.Unquote(literal.Value)
		if err != nil {
			return "", false
		}
		text += part
	}
	return text, true
}
