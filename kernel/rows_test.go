package kernel_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Requirements about the kernel are K-001 to K-047.
func TestEveryRequirementHasATest(t *testing.T) {
	testenv.Rows(t, "K", 47, "cmd/mcp-kernel-server/*_test.go", "kernel/*_test.go", "kernel/iatp/*_test.go",
		"kernel/vfs/*_test.go")
}
