package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Browser returns the programs Chromium and Node, for tests that drive a real browser.
// As with Sandbox, the test is skipped unless AIRLOCK_TEST_SANDBOX=1 asks for it; asked
// for and impossible, it fails. `make test` installs what is missing.
func Browser(t testing.TB) (chromium, node string) {
	t.Helper()
	if os.Getenv("AIRLOCK_TEST_SANDBOX") != "1" {
		t.Skip("drives a real browser: run `make test`, or set AIRLOCK_TEST_SANDBOX=1")
	}
	library := filepath.Join(RepoRoot(t), "test", "console", "node_modules", "playwright-core", "package.json")
	if _, err := os.Stat(library); err != nil {
		t.Fatalf("browser tests were asked for, but %v (run `make browser` first)", err)
	}
	var found [2]string
	for i, program := range []string{"chromium", "node"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatalf("browser tests were asked for, but %v (run `make browser` first)", err)
		}
		found[i] = path
	}
	return found[0], found[1]
}
