package policies_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// policyOf returns a policy with a condition.
func policyOf(condition string) string {
	return "permit(principal, action, resource) when { " + condition + " };\n"
}

// Without the limits, the first of these overflow the stack, which ends the process, and chains of
// members take hours.
func TestPoliciesHaveLimits(t *testing.T) {
	const deep = 1_000_000
	for name, source := range map[string]string{
		"brackets":        policyOf(strings.Repeat("(", deep) + "true" + strings.Repeat(")", deep)),
		"sets":            policyOf(strings.Repeat("[", deep) + strings.Repeat("]", deep) + " == []"),
		"records":         policyOf(strings.Repeat("{a:", deep) + "1" + strings.Repeat("}", deep) + " == {}"),
		"conditions":      policyOf(strings.Repeat("if true then true else ", deep) + "true"),
		"members":         policyOf("context" + strings.Repeat(".a", deep)),
		"fewer members":   policyOf("context" + strings.Repeat(" . a", 300)),
		"members by text": policyOf("context" + strings.Repeat(`["a"]`, 300)),
		// the hash of a set is the sum of those of its items, so all of these are compared with each other
		"sets in a set": policyOf("[" + strings.Repeat("[1, 2], ", 300) + "[1]].contains(context.input.a)"),
		"operators":     policyOf("true" + strings.Repeat(" && true", deep)),
		"unclosed":      strings.Repeat("(", deep),
		"after a comment and a text": `// "` + "\n" + policyOf(`context.input.a == "\";{"`) +
			policyOf(strings.Repeat("(", 300)+"true"+strings.Repeat(")", 300)),
	} {
		_, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(source)})
		if err == nil || !strings.Contains(err.Error(), "divide it") {
			t.Errorf("%s: got error %.200v, want one with the remedy", name, err)
		}
	}
}

// Thousands of policies within the limits are loaded, checked and evaluated.
func TestThousandsOfPolicies(t *testing.T) {
	var source strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&source, "@id(\"p%d\")\n%s", i, policyOf(fmt.Sprintf("context.input has path && "+
			"context.input.path like \"*/a%d/*/b/*\" && [\"x\", \"y\"].contains(context.input.path)", i)))
	}
	for i, condition := range []string{
		strings.Repeat("(", 100) + "true" + strings.Repeat(")", 100),
		"true" + strings.Repeat(" || true", 5_000),
		"context has a && context" + strings.Repeat(".a", 150),
		strings.Repeat("context.input has a && ", 500) + "true",
		strings.Repeat("if context.input has a then context.input.a == 1 else ", 150) + "true",
		"context.input has a && [" + strings.Repeat("1, ", 10_000) + "1].contains(context.input.a)",
		"context.input has a && [" + strings.Repeat("[1, 2], ", 150) + "[1]].contains(context.input.a)",
		strings.Repeat("if true then true else ", 1_000) + "true",
	} {
		fmt.Fprintf(&source, "@id(\"d%d\")\n%s", i, policyOf(condition))
	}
	e := load(t, source.String())
	text := strings.Repeat("/", 4_000)
	d := e.Decide(policies.Request{Principal: "ann", Tool: tool(catalog.Annotations{}),
		Input: map[string]any{"path": text}})
	if !d.Allow {
		t.Errorf("got %v %v, want a permission", d.Reasons, d.Errors)
	}
}

// A call whose arguments would keep the rules busy is denied, unless the rules examine other
// arguments.
func TestLongTextsAndPatterns(t *testing.T) {
	pattern := "*" + strings.Repeat("a", 5_000) + "b*"
	e := load(t, policyOf("true"), policyOf(fmt.Sprintf("context.input has text && context.input.text like %q",
		pattern)))
	long := strings.Repeat("a", 4<<20)
	for name, test := range map[string]struct {
		input map[string]any
		allow bool
	}{
		"the argument of the pattern": {map[string]any{"text": long}, false},
		"another argument":            {map[string]any{"other": long, "text": "short"}, true},
		"a short text":                {map[string]any{"text": long[:10_000]}, true},
	} {
		d := e.Decide(policies.Request{Principal: "ann", Tool: tool(catalog.Annotations{}), Input: test.input})
		if d.Allow != test.allow {
			t.Errorf("%s: got allowed %v %v %v, want %v", name, d.Allow, d.Reasons, d.Errors, test.allow)
		}
		if !d.Allow && !strings.Contains(strings.Join(d.Reasons, " "), "divide the call into smaller ones") {
			t.Errorf("%s: got reasons %v, want what to write instead", name, d.Reasons)
		}
	}
	unclear := load(t, policyOf(fmt.Sprintf("context.input has list && [\"x\"].contains(context.input.list) || "+
		"(if context.input has t then context.input else context.input).t like %q", pattern)))
	d := unclear.Decide(policies.Request{Principal: "ann", Tool: tool(catalog.Annotations{}),
		Input: map[string]any{"t": long}})
	if d.Allow || len(d.Errors) > 0 {
		t.Errorf("a pattern on an argument without a path: got %v %v, want a denial without evaluation", d.Allow,
			d.Errors)
	}
}

// Lists whose items have one hash make Cedar compare each item with all others. They are not built
// beyond a limit, and a rule that looks into them denies.
func TestListsWithOneHash(t *testing.T) {
	var many []any
	number := func(n int) json.Number { return json.Number(strconv.Itoa(n)) }
	for i := range 100 {
		list := make([]any, 1000)
		for k := range list {
			list[k] = []any{number(k + 1), number(1_000_000 + i - k)}
		}
		many = append(many, list)
	}
	var nested func(levels int) any // lists within lists: each level compares those of the next one
	nested = func(levels int) any {
		if levels == 0 {
			return json.Number("1")
		}
		return []any{nested(levels - 1), []any{nested(levels - 1)}}
	}
	arguments := map[string]any{"many": many, "nested": nested(12), "ok": []any{"a", "b"}}
	for name, test := range map[string]struct {
		rule  string
		allow bool
	}{
		"a rule about another list": {`context.input.ok.contains("b")`, true},
		"a rule about the list":     {`context.input.ok.contains("b") && !context.input.many.contains("x")`, false},
	} {
		d := load(t, policyOf(test.rule)).Decide(policies.Request{Principal: "ann", Tool: tool(catalog.Annotations{}),
			Input: arguments})
		if d.Allow != test.allow {
			t.Errorf("%s: got allowed %v %v %v, want %v", name, d.Allow, d.Reasons, d.Errors, test.allow)
		}
	}
}

// A path that a server could read differently is not absent: a forbid that tests whether it is there
// must not be skipped.
func TestAnUnclearPathIsNotAbsent(t *testing.T) {
	rules := []string{"permit(principal, action, resource);\n",
		`forbid(principal, action, resource) when { context.paths has options &&
		context.paths.options has file && context.paths.options.file like "/etc/*" };`}
	for path, want := range map[string]bool{"/srv/a": true, "/etc/passwd": false, "/srv/%2e%2e/etc/passwd": false} {
		d := load(t, rules...).Decide(policies.Request{Principal: "ann", Tool: tool(catalog.Annotations{}),
			Input: map[string]any{"options": map[string]any{"file": path}}})
		if d.Allow != want {
			t.Errorf("%s: got allowed %v %v, want %v", path, d.Allow, d.Errors, want)
		}
	}
}
