package telemetry

import (
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// startCollector starts one that ends with the test.
func startCollector(t *testing.T) *Collector {
	t.Helper()
	c, err := StartCollector(t.Context(), filepath.Join(testenv.RepoRoot(t), "bin", "otelcol"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}
