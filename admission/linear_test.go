package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
)

// costly are texts that parsers of SQL, shells, code, markdown, encodings and numbers take long for
// if they go back in the text.
var costly = []string{
	// SQL
	"SELECT ", "(", "((", ")", "'", "''", `"`, "`", "[", "--", "-- \r", "/*", "/*!", "/*! */", "*/", "/**/", "#", "$$",
	"$a$", "$a$ $b$ ",
	"$a", "E'\\", "\\'", "U&'", ";", "; ;", "SELECT 1;", "a.", "x,", "SELECT (", "WITH a AS (", "CASE WHEN ", "UNION ",
	"DROP", "DROP ", "DELETE ", "q'[", "{", "}}", "@@", "0x", "\x00", "\u2028", "\ufeff", "1e", "1.",
	"DELETE FROM ", "INSERT INTO ", "UPDATE x SET ", "EXPLAIN ", "f(", "BEGIN ", "DO $$", "COPY ",
	// shells
	"rm ", "rm -", "sudo ", "sudo sudo ", "env ", "x=1 ", "; then ", "|", "| ", "&& ", "`rm", "$(", "${", "<<A\n",
	"curl ", "curl | ",
	"base64 -d ", "> /", "-exec ", "xargs ", "git ", "\\\n", "kill ", "cmd /", "powershell ",
	// code
	"import ", "import os,", "import a, ", "from os ", "os . ", "os.", "open(", "open (,", "eval(", "exec ( ",
	"__import__", "require('",
	"process . ", "new Function", "fs . promises", "db . x ", "db.a.", "<?php", "%x", "mutation", "\nmutation ",
	"subprocess .",
	// encodings
	"%", "%25", "%2525", "%41", "\\u0041", "\\u", "\\x41", "&#", "&#65;", "&amp;", "&amp;amp;", "QUJD", "QUJD\n", "==",
	"41 42 ", "0x41,", "QQ==",
	"%u0041", "+ADw-", "=?utf-8?q?", "=3D", "\\101", "a\u0301", "\ufb01", "\u1e9b\u0323", "\uff33\uff25", "\u202e",
	"\u200b",
	// markdown and JSON in texts
	"*", "**", "_a", "![", "![](", "[a](", "<a ", "<!--", "> ", "- ", "\n\n", "|a|\n", "{\"a\":", "[[", `\"`, "{\\\"",
	`{"a":"`, "]", "null,",
	// words and numbers
	"a", "a ", "A1", "9", "0", ".", "e", "-", " ", "\n", "\t", "\r\n", "é", "\U0010ffff",
}

// repeatedText returns a unit repeated to n bytes.
func repeatedText(unit string, n int) string { return strings.Repeat(unit, max(1, n/len(unit))) }

// The cost of everything that judges an act is at most linear in its size (issue 24: a statement of
// 800 kB blocked the decisions of all agents for 5 to 22 s).
func TestJudgingIsLinear(t *testing.T) {
	var judges = map[string]func(text string) func(){
		"the judge of SQL": func(text string) func() { return func() { sqltext.Judge(text) } },
		"the search for SQL": func(text string) func() {
			return func() { sqltext.Destroys(text); sqltext.HasEffects(text) }
		},
		"the risk of arguments": func(text string) func() {
			subject := risk.Subject{Name: "unknown_tool", Arguments: map[string]any{"text": text, "query": text}}
			return func() { _, _ = risk.Assess(t.Context(), subject) }
		},
		"the risk of SQL": func(text string) func() {
			subject := risk.Subject{Name: "database_query", Arguments: map[string]any{"sql": text}}
			return func() { _, _ = risk.Assess(t.Context(), subject) }
		},
		"the risk of a list": func(text string) func() {
			var list []any
			for len(text) > 0 {
				n := min(16, len(text))
				list, text = append(list, text[:n]), text[n:]
			}
			subject := risk.Subject{Name: "unknown_tool", Arguments: map[string]any{"list": list}}
			return func() { _, _ = risk.Assess(t.Context(), subject) }
		},
		"an action": func(text string) func() {
			raw, err := json.Marshal(map[string]any{"type": "read_file", "query": text, "parameters": map[string]any{
				"text": text, "names": map[string]any{text: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if a, err := admission.ParseAction(raw); err == nil {
					_, _ = a.Fingerprint()
				}
			}
		},
		"JSON": func(text string) func() {
			return func() {
				_, _ = strictjson.Value([]byte(text))
				_ = strictjson.Check([]byte(text))
				_, _ = canon.JSON([]byte(text))
				canon.IsDeep([]byte(text))
			}
		},
		"the text that people read": func(text string) func() {
			raw, err := json.Marshal(map[string]any{"text": text})
			if err != nil {
				t.Fatal(err)
			}
			q := approval.Question{Subject: approval.Subject{Arguments: raw, Code: text}}
			return func() { approval.Text(q); approval.Excerpt(q, 2000); approval.Arguments(q, 2000) }
		},
	}
	size := 4 << 10
	for name, judge := range judges {
		t.Run(name, func(t *testing.T) {
			for i, unit := range costly {
				if name == "the risk of a list" && i%10 > 0 {
					continue // the items are so short that what they repeat makes little difference
				}
				testenv.Linear(t, fmt.Sprintf("%q", unit), size, func(n int) func() {
					return judge(repeatedText(unit, n))
				})
			}
		})
	}
}

// Values with many members or items, or with long numbers, cost at most linear time, too.
func TestJudgingValuesIsLinear(t *testing.T) {
	shapes := map[string]func(n int) string{
		"many members": func(n int) string {
			var b strings.Builder
			for i := range n / 16 {
				fmt.Fprintf(&b, `,"member_%d":"x"`, i)
			}
			return "{" + b.String()[1:] + "}"
		},
		"names with one beginning": func(n int) string {
			var b strings.Builder
			for i := range n / 64 {
				fmt.Fprintf(&b, `,"%s%d":1`, strings.Repeat("a", 50), i)
			}
			return "{" + b.String()[1:] + "}"
		},
		"many items":    func(n int) string { return `{"a":[` + strings.Repeat(`"rm",`, n/5) + `"x"]}` },
		"many numbers":  func(n int) string { return `{"a":[` + strings.Repeat("114,", n/4) + `1]}` },
		"many objects":  func(n int) string { return `{"a":[` + strings.Repeat(`{"sql":"x"},`, n/12) + `1]}` },
		"a long number": func(n int) string { return `{"a":` + strings.Repeat("9", n) + `}` },
		"a long fraction": func(n int) string {
			return `{"a":0.` + strings.Repeat("0", n/2) + strings.Repeat("7", n/2) + `}`
		},
		"numbers with exponents": func(n int) string { return `{"a":[` + strings.Repeat("1e308,", n/6) + `1]}` },
		"nested lists": func(n int) string {
			return `{"a":` + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + `}`
		},
		"lists of depth 60": func(n int) string {
			return `{"a":[` + strings.Repeat(strings.Repeat("[", 60)+strings.Repeat("]", 60)+",", n/121) + `1]}`
		},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			testenv.Linear(t, "an action", 16<<10, func(n int) func() {
				raw := []byte(`{"type":"read_file","parameters":` + shape(n) + `}`)
				return func() {
					if a, err := admission.ParseAction(raw); err == nil {
						_, _ = a.Fingerprint()
					}
				}
			})
			testenv.Linear(t, "a context", 16<<10, func(n int) func() {
				raw := []byte(shape(n))
				return func() { _, _ = admission.ParseContext(raw) }
			})
			testenv.Linear(t, "its risk", 16<<10, func(n int) func() {
				value, err := strictjson.Value([]byte(shape(n)))
				if err != nil {
					return func() {}
				}
				return func() { _, _ = risk.Assess(t.Context(), risk.Subject{Name: "unknown", Arguments: value}) }
			})
			testenv.Linear(t, "the text that people read", 16<<10, func(n int) func() {
				q := approval.Question{Subject: approval.Subject{Arguments: json.RawMessage(shape(n))}}
				return func() { approval.Text(q); approval.Excerpt(q, 2000); approval.Arguments(q, 2000) }
			})
			testenv.Linear(t, "the rules", 16<<10, func(n int) func() {
				return rulesOn(t, json.RawMessage(shape(n)))
			})
		})
	}
}

// rulesOn returns the evaluation of rules that read the arguments of a call.
func rulesOn(t *testing.T, arguments json.RawMessage) func() {
	engine := rules(t, `permit (principal, action, resource) when { context.input has a && context.input.a == "x" };
		forbid (principal, action, resource) when { context.input has text && context.input.text like "*x*y*" };`)
	value, err := strictjson.Value(arguments)
	input, _ := value.(map[string]any)
	if err != nil || input == nil {
		return func() {}
	}
	request := policies.Request{Tool: catalog.Tool{ServerID: "files", Name: "read"}, Input: input}
	return func() { engine.Decide(request) }
}
