package testenv

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// SuiteNode returns the Node that is installed with the protocol's suites and SDKs in
// test/conformance, which need a newer one than the machine may have.
func SuiteNode(t testing.TB) string {
	t.Helper()
	node := filepath.Join(RepoRoot(t), "test", "conformance", "node_modules",
		"node-linux-"+map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH], "bin", "node")
	if _, err := os.Stat(node); err != nil {
		t.Fatalf("the suites are not installed: %v\nhint: run make setup", err)
	}
	return node
}
