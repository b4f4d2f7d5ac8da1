package broker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

func TestFormsThatAPersonMayBeShown(t *testing.T) {
	field := func(text string) string {
		return `{"type":"object","properties":{"a":` + text + `},"required":["a"]}`
	}
	many := func(n int) string {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"f%d":{"type":"string"}`, i)
		}
		return `{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`
	}
	tests := []struct {
		name, schema string
		wrong        string // in the error; empty for none
		clean        string // the form that is shown
		needs        bool
	}{
		{"no form", ``, "", ``, false},
		{"no fields", `{"type":"object","properties":{}}`, "", `{"properties":{},"type":"object"}`, false},
		{"a text", field(`{"type":"string","title":"T","minLength":2,"format":"email"}`), "",
			`{"properties":{"a":{"format":"email","minLength":2,"title":"T","type":"string"}},"required":["a"],` +
				`"type":"object"}`, true},
		{"a default", field(`{"type":"integer","default":3}`), "",
			`{"properties":{"a":{"default":3,"type":"integer"}},"required":["a"],"type":"object"}`, false},
		{"choices", field(`{"type":"string","enum":["x","y"],"enumNames":["X","Y"]}`), "",
			`{"properties":{"a":{"enum":["x","y"],"enumNames":["X","Y"],"type":"string"}},"required":["a"],` +
				`"type":"object"}`, true},
		{"titled choices", field(`{"type":"string","oneOf":[{"const":"x","title":"X"}]}`), "",
			`{"properties":{"a":{"oneOf":[{"const":"x","title":"X"}],"type":"string"}},"required":["a"],` +
				`"type":"object"}`, true},
		{"several choices", field(`{"type":"array","items":{"type":"string","enum":["x"]},"maxItems":1}`), "",
			`{"properties":{"a":{"items":{"enum":["x"],"type":"string"},"maxItems":1,"type":"array"}},` +
				`"required":["a"],"type":"object"}`, true},
		{"what MCP does not know is left out", field(
			`{"type":"boolean","$ref":"http://x","x-evil":1,"pattern":"(a+)+$"}`), "",
			`{"properties":{"a":{"type":"boolean"}},"required":["a"],"type":"object"}`, true},
		{"a hidden character in a title is shown", field(`{"type":"boolean","title":"a\u202eb"}`), "",
			`{"properties":{"a":{"title":"a\\u{202e}b","type":"boolean"}},"required":["a"],"type":"object"}`, true},
		{"an object within", field(`{"type":"object","properties":{}}`), "does not allow", "", false},
		{"a list of texts", field(`{"type":"array"}`), "without a type for its items", "", false},
		{"a hidden character in a choice", field(`{"type":"string","enum":["a\u200b"]}`), "cannot be shown", "", false},
		{"choices with more in them", field(`{"type":"string","oneOf":[{"const":"x","$ref":"y"}]}`), "cannot be shown",
			"", false},
		{"a hidden character in a name", `{"type":"object","properties":{"a\u200b":{"type":"string"}}}`,
			"hidden characters", "", false},
		{"no object", `{"type":"array"}`, "does not have the structure that MCP allows", "", false},
		{"no schema", `7`, "does not have the structure that MCP allows", "", false},
		{"too many fields", many(maxFormFields + 1), "more than 20 fields", "", false},
		{"too large", `{"type":"object","title":"` + strings.Repeat("x", maxFormBytes) + `"}`, "more than 16384 bytes",
			"", false},
		{"too deep", `{"properties":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_001),
			"more than", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := upstream.Elicitation{ServerID: "crm", Message: "m"}
			if test.schema != "" {
				e.Schema = json.RawMessage(test.schema)
			}
			got, err := readForm(e)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("got %v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil || string(got.Schema) != test.clean || got.NeedsValues != test.needs {
				t.Errorf("got %s, needs values %t, %v; want %s, %t", got.Schema, got.NeedsValues, err, test.clean,
					test.needs)
			}
		})
	}
}

func TestAddressesThatAPersonMayBeShown(t *testing.T) {
	for address, want := range map[string]bool{
		"https://pay.example/now?a=1": true, "http://pay.example/": false, "javascript:alert(1)": false,
		"https://ada:pw@pay.example/": false,
		"https://":                    false, "https://pay.exa\u200bmple/": false, "file:///etc/passwd": false,
		"https://x/" + strings.Repeat("a", maxAskedText): false,
	} {
		got, err := readForm(upstream.Elicitation{Message: "m", URL: address})
		if (err == nil) != want {
			t.Errorf("%q: got %v, want it shown: %t", address, err, want)
		}
		if want && (got.URL != address || !strings.Contains(string(got.shown), "pay.example") ||
			strings.Contains(got.what, "a=1")) {
			t.Errorf("%q: got %+v", address, got)
		}
	}
}
