package gateway

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// TestEveryRequirementHasATest is about the requirements on the gateway, its tools and
// its engines.
func TestEveryRequirementHasATest(t *testing.T) {
	testenv.Rows(t, "Q", 145, "cmd/qwed-mcp/*_test.go", "verify/gateway/*_test.go", "app/server/gateway/*_test.go",
		"app/runs/*_test.go", "app/bom/*_test.go", "sdk/python/tests/test_*.py")
}
