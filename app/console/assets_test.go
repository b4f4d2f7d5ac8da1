package console_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The embedded file is the one that build/htmx/package-lock.json locks by its digest.
func TestHtmxIsTheOneOfNpm(t *testing.T) {
	root := testenv.RepoRoot(t)
	npm := filepath.Join(root, "build/htmx/node_modules/htmx.org")
	if _, err := os.Stat(npm); err != nil {
		const how = "make build/htmx/node_modules/.package-lock.json installs it"
		if testenv.WantsSandboxes() {
			t.Fatalf("htmx is not installed: %s", how)
		}
		t.Skipf("htmx is not installed: %s", how)
	}
	for ours, theirs := range map[string]string{"htmx.min.js": "dist/htmx.min.js", "htmx.LICENSE": "LICENSE"} {
		got, err := os.ReadFile(filepath.Join(root, "app/console/assets", ours))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(npm, theirs))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not %s of the package", ours, theirs)
		}
	}
}
