package broker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
)

// If a schema is open, its check only reports the missing argument. The message also names the
// unknown arguments.
func TestMisnamedArgumentsAreNamed(t *testing.T) {
	for _, test := range []struct{ name, schema, arguments, want string }{
		{"a name of the model's own", `{"properties":{"path":{},"head":{}}}`, `{"file_path":"x"}`,
			` The schema describes "head", "path", but not "file_path".`},
		{"all names are known", `{"properties":{"path":{}}}`, `{"path":7}`, ""},
		{"a closed schema, whose check names them", `{"properties":{"path":{}},"additionalProperties":false}`,
			`{"pth":7}`, ""},
		{"a schema that describes nothing", `{}`, `{"a":1}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var input map[string]any
			if err := json.Unmarshal([]byte(test.arguments), &input); err != nil {
				t.Fatal(err)
			}
			if got := misnamed(catalog.Tool{InputSchema: json.RawMessage(test.schema)}, input); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Issue 27: renamed members keep the bytes of their values.
func TestRespell(t *testing.T) {
	const text = `{"max_count":1e400,"q":"<a>&\u2028"}`
	input := map[string]any{"max_count": json.Number("1e400"), "q": "x"}
	got, err := respell(json.RawMessage(text), input, map[string]string{"max_count": "maxCount"})
	if want := `{"maxCount":1e400,"q":"<a>&\u2028"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, left := input["max_count"]; left || input["maxCount"] != json.Number("1e400") {
		t.Errorf("got %v, want maxCount alone", input)
	}
}

func TestMisnamedArgumentsAreFewAndShort(t *testing.T) {
	input := map[string]any{}
	for i := range 100 {
		input[strings.Repeat("x", i+1000)] = i
	}
	got := misnamed(catalog.Tool{InputSchema: json.RawMessage(`{"properties":{"a":{}}}`)}, input)
	if len(got) > 1200 || !strings.Contains(got, "88 more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}
