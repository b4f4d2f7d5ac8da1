// Package stores runs the tests of all stores on PostgreSQL. The packages run them on SQLite.
package stores

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// stores are the packages with statements. Their tests open databases with databasetest.Open.
var stores = []string{"./admission", "./admission/agents", "./admission/approval", "./admission/budget",
	"./admission/clusterlimit", "./audit/clusterlog", "./app/auth", "./app/copies", "./app/trust", "./broker/oauth",
	"./broker/taint", "./catalog/pins", "./kernel/iatp", "./kernel/vfs"}

// users are packages whose tests use several stores together.
var users = []string{"./app/api", "./kernel"}

func TestStoresOnPostgreSQL(t *testing.T) {
	tests := exec.CommandContext(t.Context(), "go",
		slices.Concat([]string{"test", "-count=1", "-vet=off", "-skip", "(Is|Are)Linear$"}, stores, users)...)
	tests.Dir = testenv.RepoRoot(t)
	// Sandboxes are the same on both engines.
	tests.Env = append(os.Environ(), databasetest.Variable+"="+databasetest.Server(t), "AIRLOCK_TEST_SANDBOX=")
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
