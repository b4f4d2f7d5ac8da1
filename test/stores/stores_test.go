// Package stores runs the tests of all stores on PostgreSQL. The packages run them on SQLite.
package stores

import (
	"os"
	"os/exec"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// stores are the packages with statements. Their tests open databases with databasetest.Open.
var stores = []string{"./admission", "./admission/agents", "./admission/budget", "./app/auth", "./broker/taint",
	"./kernel/iatp", "./kernel/vfs"}

func TestStoresOnPostgreSQL(t *testing.T) {
	tests := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1"}, stores...)...)
	tests.Dir = testenv.RepoRoot(t)
	tests.Env = append(os.Environ(), databasetest.Variable+"="+databasetest.Server(t))
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
