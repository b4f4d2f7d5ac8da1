package house_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// maxTracked is how large a file of the project may be, in bytes: each clone takes each
// version of it, for ever.
const maxTracked = 512 << 10

// gitFiles lists the files of the repository that match the patterns, or all. Files that are not
// committed yet count, those that .gitignore names do not. It skips the test outside of a repository.
func gitFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	root := testenv.RepoRoot(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("not a git repository: what is committed is not known")
	}
	args := []string{"-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}
	list := exec.CommandContext(t.Context(), "git", append(args, patterns...)...)
	list.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestNothingBuiltIsCommitted finds programs, archives and what else is made from the
// sources among the files of the repository.
func TestNothingBuiltIsCommitted(t *testing.T) {
	root := testenv.RepoRoot(t)
	names := gitFiles(t)
	if len(names) < 500 {
		t.Fatalf("git lists %d files: the rule would check next to nothing", len(names))
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if problem := built(data); problem != "" {
			t.Errorf("%s is %s: let a command of the Makefile make it, and .gitignore name it", name, problem)
		}
	}
}

// built returns why a file looks like the output of a program, or "".
func built(data []byte) string {
	for kind, magic := range map[string]string{
		"a program": "\x7fELF", "a program for macOS": "\xcf\xfa\xed\xfe", "a program for Windows": "MZ\x90\x00",
		"an archive": "!<arch>\n",
		"compressed": "\x1f\x8b", "a zip file": "PK\x03\x04", "a database": "SQLite format 3\x00",
		"a WebAssembly module": "\x00asm",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return kind
		}
	}
	if len(data) > maxTracked {
		return fmt.Sprintf("%d bytes long, the limit is %d", len(data), maxTracked)
	}
	return ""
}

func TestWhatIsBuiltIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"package house": "", "": "", "\x7fELF\x02": "a program", "\x1f\x8b\x08": "compressed",
		strings.Repeat("a", maxTracked+1): "524289 bytes long, the limit is 524288",
	} {
		if got := built([]byte(text)); got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}
