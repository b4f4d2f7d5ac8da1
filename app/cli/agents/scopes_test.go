package agents

import (
	"reflect"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
)

// Issue 26: `tokens create --help` describes every scope.
func TestHelpDescribesEveryScope(t *testing.T) {
	field, _ := reflect.TypeFor[tokensCreateVerb]().FieldByName("Scope")
	for _, scope := range auth.Scopes {
		if before, _, ok := strings.Cut(scope, ":"); ok {
			scope = before + ":TYPE"
		}
		if help := field.Tag.Get("help"); !strings.Contains(help, scope+" (") {
			t.Errorf("the help of --scope has no description of %q: %s", scope, help)
		}
	}
}
