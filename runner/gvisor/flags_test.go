package gvisor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// TestVersionIsThePinnedOne compares the version that Airlock insists on against
// the module that the programs are built from.
func TestVersionIsThePinnedOne(t *testing.T) {
	pinned := regexp.MustCompile(`(?m)^require gvisor\.dev/gvisor (\S+)$`).FindStringSubmatch(source(t, "go.mod"))
	if pinned == nil {
		t.Fatal("build/gvisor/go.mod requires no gVisor")
	}
	if got, want := gvisor.Version, pinned[1]; got != want {
		t.Errorf("got %s, want %s, as build/gvisor/go.mod has it", got, want)
	}
}

// TestOwnBuildPassesResourcesOn checks the flags against Airlock's build of runsc, which
// is a separate module and reads them from annotations.
func TestOwnBuildPassesResourcesOn(t *testing.T) {
	program := source(t, "runsc", "limits.go")
	for _, flag := range gvisor.Resources(runner.DefaultLimits()) {
		if want := `{"` + gvisor.Annotation(flag) + `", "--` + flag.Name + `="}`; !strings.Contains(program, want) {
			t.Errorf("build/gvisor/runsc/limits.go has no %s", want)
		}
	}
}

func source(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{testenv.RepoRoot(t), "build", "gvisor"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
