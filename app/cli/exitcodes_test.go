package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// docs/cli.md and docs/troubleshooting.md list the exit codes of the program. The manual page and
// `airlock help exit-codes` print the same list.
func TestExitCodesAreDocumented(t *testing.T) {
	for _, page := range []string{"cli.md", "troubleshooting.md"} {
		testExitCodes(t, page)
	}
}

func testExitCodes(t *testing.T, name string) {
	page, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)## Exit codes\n(.*?)\n## `).FindSubmatch(page)
	if section == nil {
		t.Fatalf("docs/%s has no section about exit codes", name)
	}
	var documented, listed []int
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| \S`).FindAllSubmatch(section[1], -1) {
		code, err := strconv.Atoi(string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		documented = append(documented, code)
	}
	for _, e := range exitCodes {
		listed = append(listed, e.code)
	}
	if all := []int{verb.ExitDone, verb.ExitFailed, verb.ExitUsage, verb.ExitRefused}; !slices.Equal(documented, all) ||
		!slices.Equal(listed, all) {
		t.Errorf("docs/%s has %v, the manual page %v, want %v", name, documented, listed, all)
	}
}
