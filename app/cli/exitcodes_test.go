package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// docs/cli.md lists the exit codes of the program. The manual page and
// `airlock help exit-codes` print the same list.
func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)## Exit codes\n(.*?)\n## `).FindSubmatch(page)
	if section == nil {
		t.Fatal("docs/cli.md has no section about exit codes")
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
	if all := []int{ExitDone, ExitFailed, ExitUsage, ExitRefused}; !slices.Equal(documented, all) || !slices.Equal(listed, all) {
		t.Errorf("docs/cli.md has %v, the manual page %v, want %v", documented, listed, all)
	}
}
