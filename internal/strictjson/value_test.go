package strictjson_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

func TestValueRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a name twice", `{"path":"/ok","path":"/etc"}`, `the name "path" twice`},
		{"a name twice, written differently", `{"path":1,"p\u0061th":2}`, `the name "path" twice`},
		{"bytes that are not UTF-8", "\"\xff\"", "not valid UTF-8"},
		{"half a surrogate pair", `"\ud800"`, "half a surrogate pair"},
		{"the low half alone", `"a\udc00"`, "half a surrogate pair"},
		{"a second value", `{} {}`, "more after the end"},
		{"nothing", ``, "ends too early"},
		{"half an object", `{"a":`, "ends too early"},
		{"bad syntax", `{"a" 1}`, "not JSON"},
		{"an endless exponent", `1e999999999`, "exponent"},
		{"an endless number", strings.Repeat("9", 2000), "more than 1000 characters"},
		{"deep nesting", strings.Repeat("[", 5000), "nested more than 128 deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := strictjson.Value([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if _, err := strictjson.Value([]byte(`"\ud83d\ude00 \\ud800 \\"`)); err != nil {
		t.Errorf("a whole pair and an escaped backslash: got %v, want nil", err)
	}
}
