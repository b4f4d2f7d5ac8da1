package policies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// Issue 27: a JSON number is always a decimal, and an integer always a Long, so that a rule can be written for both
// 500 and 1.5. What neither can hold denies the call.
func TestNumbersHaveTheTypeOfTheirSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"amount":{"type":"number"},"count":{"type":"integer"},"any":{},
		"list":{"type":"array","items":{"type":"number"}},
		"price":{"$ref":"#/$defs/price"},"either":{"anyOf":[{"type":"string"},{"type":"number"}]},
		"choice":{"type":"number","enum":[1,2.5]}},
		"$defs":{"price":{"type":"object","properties":{"net":{"type":"number"}}}}}`
	const above, whole = `greaterThan(decimal("100.0"))`, "matches"
	tests := []struct {
		condition, input string
		want             string // matches, not or fails
	}{
		{"context.input.amount." + above, `{"amount":500}`, whole},
		{"context.input.amount." + above, `{"amount":100.0001}`, whole},
		{"context.input.amount." + above, `{"amount":1}`, "not"},
		{"context.input.amount." + above, `{"amount":922337203685477.5807}`, whole},
		{"context.input.amount." + above, `{"amount":922337203685477.5808}`, "fails"},
		{"context.input.amount." + above, `{"amount":1e30}`, "fails"},
		{"context.input.amount." + above, `{"amount":100.00001}`, "fails"},
		{`context.input.amount == decimal("5.0")`, `{"amount":5}`, whole},
		{"context.input.amount > 100", `{"amount":500}`, "fails"},
		{"context.paths.amount." + above, `{"amount":500}`, whole},
		{"context.input.count > 100", `{"count":500}`, whole},
		{"context.input.count > 100", `{"count":5e2}`, whole},
		{"context.input.count > 100", `{"count":9223372036854775808}`, "fails"},
		{"context.input.any > 100", `{"any":500}`, whole},
		{`context.input.list.contains(decimal("7.0"))`, `{"list":[1.5,7]}`, whole},
		{"context.input.price.net." + above, `{"price":{"net":500}}`, whole},
		{"context.input.either." + above, `{"either":500}`, whole},
		{`context.input.choice == decimal("1.0")`, `{"choice":1}`, whole},
	}
	tool := catalog.Tool{ServerID: "crm", Name: "pay", InputSchema: json.RawMessage(schema)}
	for _, test := range tests {
		t.Run(test.condition+" "+test.input, func(t *testing.T) {
			e := load(t, `permit (principal, action, resource);`,
				fmt.Sprintf(`@id("f") forbid (principal, action, resource) when { %s };`, test.condition))
			d := e.Decide(policies.Request{Principal: "ann", Tool: tool, Input: input(t, test.input)})
			got := "not"
			switch {
			case len(d.Errors) > 0:
				got = "fails"
			case !d.Allow:
				got = whole
			}
			if got != test.want || got == "fails" && d.Allow {
				t.Errorf("got %s, want %s: %+v", got, test.want, d)
			}
			if strings.Contains(strings.Join(d.Errors, ""), "Opaque") {
				t.Errorf("got %q, want no name of an internal type", d.Errors)
			}
		})
	}
	text := string(policies.CedarSchema([]catalog.Server{{ID: "crm", Tools: []catalog.Tool{tool}}}))
	for _, want := range []string{`"amount"?: decimal`, `"count"?: Long`, `"list"?: Set<decimal>`} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %s in it", text, want)
		}
	}
}

// Issue 27: a rule without @id was shown with its place twice.
func TestARuleIsShownWithItsPlaceOnce(t *testing.T) {
	for want, rule := range map[string]policies.Rule{
		"a.cedar:3":           {ID: "a.cedar:3", File: "a.cedar", Line: 3},
		"team.no (a.cedar:3)": {ID: "team.no", File: "a.cedar", Line: 3},
	} {
		if got := rule.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
