package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// tableRow is one row of a table in docs/layout.md: cells without backticks.
type tableRow []string

// layoutTable reads the table that follows the given heading or text.
func layoutTable(t *testing.T, after string) []tableRow {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "layout.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), after)
	if !found {
		t.Fatalf("docs/layout.md has no %q", after)
	}
	var rows []tableRow
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			var row tableRow
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				row = append(row, strings.TrimSpace(cell))
			}
			rows = append(rows, row)
		case len(rows) > 0:
			return rows[2:] // without the heading and the rule below it
		}
	}
	return rows[2:]
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names returns what stands in backticks in a cell.
func names(cell string) []string {
	var found []string
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	return found
}

// covers reports whether a pattern of the table names the folder: exactly,
// below a trailing /*, or any at all for *.
func covers(pattern, folder string) bool {
	if pattern == "*" {
		return true
	}
	if parent, ok := strings.CutSuffix(pattern, "/*"); ok {
		return folder == parent || strings.HasPrefix(folder, parent+"/")
	}
	return pattern == folder
}

// rowOf returns the row of a folder, or of the nearest folder above it.
func rowOf(table map[string][]string, folder string) (string, []string, bool) {
	for at := folder; at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
		if allowed, ok := table[at]; ok {
			return at, allowed, true
		}
	}
	return "", nil, false
}

func isLeaf(folder string) bool {
	return strings.HasPrefix(folder, "internal/") && !strings.HasPrefix(folder, "app")
}

func TestImportsOnlyGoDown(t *testing.T) {
	table := map[string][]string{}
	for _, row := range layoutTable(t, "## The table") {
		table[names(row[0])[0]] = names(row[2])
	}
	checked, used := 0, map[string]bool{}
	for _, f := range project(t) {
		at, allowed, ok := rowOf(table, f.folder)
		if !ok {
			t.Errorf("%s: docs/layout.md has no row for the folder", f.path)
			continue
		}
		used[at] = true
		for _, path := range f.imports() {
			folder, ours := strings.CutPrefix(path, module)
			if !ours || folder == f.folder || f.isTest && isTestHelp(folder) {
				continue
			}
			checked++
			if !mayImport(f.folder, folder, allowed) {
				t.Errorf("%s imports %s: its row in docs/layout.md allows %q and leaves", f.path, folder, allowed)
			}
		}
	}
	if checked < 50 {
		t.Errorf("checked %d imports: the rule found next to nothing", checked)
	}
	for folder := range table {
		if !used[folder] {
			t.Errorf("docs/layout.md has a row for %s, where no Go file lives", folder)
		}
	}
}

// isTestHelp reports packages that exist for tests of any package.
func isTestHelp(folder string) bool {
	return folder == "internal/testenv" || folder == "internal/golden" || strings.HasSuffix(folder, "test")
}

func mayImport(from, to string, allowed []string) bool {
	if isLeaf(to) {
		return true
	}
	for _, pattern := range allowed {
		if covers(pattern, to) {
			return true
		}
	}
	return false
}

func TestLibrariesStopAtTheirPackage(t *testing.T) {
	rows := layoutTable(t, "## Libraries that stop at one package")
	seen := map[string]bool{}
	for _, f := range project(t) {
		for _, path := range f.imports() {
			for _, row := range rows {
				library := names(row[0])[0]
				if !strings.HasPrefix(path, library) {
					continue
				}
				seen[library] = true
				if !f.isTest && !within(f.folder, names(row[1])) && !strings.HasPrefix(f.folder, "test/") {
					t.Errorf("%s imports %s, which stops at %s", f.path, path, row[1])
				}
			}
		}
	}
	for _, row := range rows {
		if library := names(row[0])[0]; !seen[library] {
			t.Errorf("docs/layout.md lists %s, which nothing imports", library)
		}
	}
}

func within(folder string, packages []string) bool {
	for _, p := range packages {
		if covers(p+"/*", folder) {
			return true
		}
	}
	return false
}
