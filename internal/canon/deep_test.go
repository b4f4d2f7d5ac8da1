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
