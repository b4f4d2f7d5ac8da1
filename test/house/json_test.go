package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// rewritesJSON are files that rewrite JSON token by token, in its order. Their input was
// decoded strictly before.
var rewritesJSON = []string{
	"admission/approval/arguments.go", "app/orchestrator/preview.go", "app/server/ids.go", "catalog/hygiene.go",
	"redact/json.go",
}

// JSON from outside is decoded by internal/strictjson, which accepts no text that another
// decoder could read differently (issue 24).
func TestJSONIsDecodedStrictly(t *testing.T) {
	var rewriting []string
	for _, f := range project(t) {
		// test and build are not in the product; gVisor's patch cannot import our packages.
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "test/") ||
			strings.HasPrefix(f.path, "build/") ||
			f.directory == "internal/strictjson" {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			selector, ok := node.(ast.Expr)
			if !ok || !isSelector(selector, "json", "Unmarshal") && !isSelector(selector, "json", "NewDecoder") {
				return true
			}
			if slices.Contains(rewritesJSON, f.path) {
				rewriting = append(rewriting, f.path)
				return true
			}
			t.Errorf("%s: decode JSON with internal/strictjson", f.at(selector))
			return true
		})
	}
	if slices.Sort(rewriting); !slices.Equal(slices.Compact(rewriting), rewritesJSON) {
		t.Errorf("got %v that rewrite JSON, want %v: update the list", rewriting, rewritesJSON)
	}
}
