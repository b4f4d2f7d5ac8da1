package canon_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// A value that is nested too deep is an error at once: the library would take minutes.
func TestDeepJSONIsAnError(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)} {
		if _, err := canon.JSON([]byte(text)); !errors.Is(err, canon.ErrDeep) {
			t.Errorf("got %v, want ErrDeep", err)
		}
	}
	if _, err := canon.JSON([]byte(strings.Repeat("[", 1000) + `"[[["` + strings.Repeat("]", 1000))); err != nil {
		t.Errorf("1,000 levels: %v", err)
	}
}

// Indentation takes as much as the square of the depth, so deep JSON has none (issue 23).
func TestDeepJSONIsNotIndented(t *testing.T) {
	for _, depth := range []int{1, 50, 101, 9000} {
		raw := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		got := canon.Indent(raw)
		if isIndented := len(got) > len(raw); isIndented != (1 < depth && depth <= 100) {
			t.Errorf("%d levels: got %d bytes of %d", depth, len(got), len(raw))
		}
	}
	if got, want := string(canon.Indent([]byte(`{"a":[1]}`))), "{\n  \"a\": [\n    1\n  ]\n}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := string(canon.Indent([]byte("[1"))); got != "[1" {
		t.Errorf("got %q, want the text", got)
	}
}
