package dist

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The same commit gives the same programs, independent of its directory and of the user's
// settings. The packages are tested in build/dist.
func TestProgramsAreTheSameWhereverTheyAreBuilt(t *testing.T) {
	testenv.Sandbox(t) // it builds for long
	root := testenv.RepoRoot(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is no checkout")
	}
	build := func(dir string, env ...string) map[string]string {
		clone := filepath.Join(dir, "airlock")
		for _, command := range [][]string{
			{"git", "clone", "--quiet", "--no-hardlinks", root, clone},
			{filepath.Join(clone, "build/dist/programs"), runtime.GOARCH, filepath.Join(dir, "programs")},
		} {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), env...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", command, err, out)
			}
		}
		entries, err := os.ReadDir(filepath.Join(dir, "programs"))
		if err != nil {
			t.Fatal(err)
		}
		digests := map[string]string{}
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(dir, "programs", e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			digests[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(content))
		}
		return digests
	}
	first := build(t.TempDir())
	second := build(filepath.Join(t.TempDir(), "a longer", "path"), "GOFLAGS=-trimpath=false", "CGO_ENABLED=1",
		"TZ=Asia/Tokyo")
	if diff := cmp.Diff(first, second); diff != "" || len(first) == 0 {
		t.Errorf("%d programs differ: %s", len(first), diff)
	}
}
