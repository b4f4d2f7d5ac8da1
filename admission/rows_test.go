package admission_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Requirements about agents are.
func TestEveryRequirementHasATest(t *testing.T) {
	testenv.Rows(t, "A", 64, "admission/*_test.go", "admission/*/*_test.go", "policies/*_test.go",
		"app/api/*_test.go", "cmd/airlock/*_test.go", "internal/startuphooks/*_test.go", "sdk/python/tests/*.py")
}
