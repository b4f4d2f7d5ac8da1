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

// names returns the texts in backticks in a cell.
func names(cell string) []string {
	var found []string
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	return found
}

// covers reports whether a pattern of the table names the directory: exactly,
// below a trailing /*, or any at all for *.
func covers(pattern, directory string) bool {
	if pattern == "*" {
		return true
	}
	if parent, ok := strings.CutSuffix(pattern, "/*"); ok {
		return directory == parent || strings.HasPrefix(directory, parent+"/")
	}
	return pattern == directory
}

// rowOf returns the row of a directory, or of the nearest directory above it.
func rowOf(table map[string][]string, directory string) (string, []string, bool) {
	for at := directory; at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
		if allowed, ok := table[at]; ok {
			return at, allowed, true
		}
	}
	return "", nil, false
}

func isLeaf(directory string) bool { return strings.HasPrefix(directory, "internal/") }

// isPlanned reports a row that reserves a place for a directory to come.
func isPlanned(row tableRow) bool { return strings.HasPrefix(row[1], "*planned:*") }

// A planned row has no directory, and every other row has one.
func TestPlannedDirectoriesAreStillToCome(t *testing.T) {
	root := testenv.RepoRoot(t)
	rows := append(layoutTable(t, "## The table"), layoutTable(t, "Directories without Go packages:")...)
	for _, row := range rows {
		directory := names(row[0])[0]
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(directory)))
		exists := err == nil && info.IsDir()
		switch {
		case isPlanned(row) && exists:
			t.Errorf("docs/layout.md calls %s planned, but it exists: remove the word", directory)
		case !isPlanned(row) && !exists:
			t.Errorf("docs/layout.md has a row for %s, which does not exist: write *planned:* or remove it", directory)
		}
	}
	if len(rows) < 50 {
		t.Errorf("found %d rows: the rule checks next to nothing", len(rows))
	}
}

func TestImportsOnlyGoDown(t *testing.T) {
	table := map[string][]string{}
	for _, row := range layoutTable(t, "## The table") {
		if len(row) != 3 {
			t.Fatalf("docs/layout.md: the row of %s has %d cells, not directory, purpose, imports", row[0], len(row))
		}
		if !isPlanned(row) {
			table[names(row[0])[0]] = names(row[2])
		}
	}
	checked, used := 0, map[string]bool{}
	for _, f := range project(t) {
		at, allowed, ok := rowOf(table, f.directory)
		if !ok {
			t.Errorf("%s: docs/layout.md has no row for the directory", f.path)
			continue
		}
		used[at] = true
		for _, path := range f.imports() {
			directory, ours := strings.CutPrefix(path, module)
			if !ours || directory == f.directory || f.isTest && isTestHelp(directory) {
				continue
			}
			checked++
			if !mayImport(f.directory, directory, allowed) {
				t.Errorf("%s imports %s: its row in docs/layout.md allows %q and leaves", f.path, directory, allowed)
			}
		}
	}
	if checked < 50 {
		t.Errorf("checked %d imports: the rule found next to nothing", checked)
	}
	for directory := range table {
		if !used[directory] {
			t.Errorf("docs/layout.md has a row for %s, where no Go file lives", directory)
		}
	}
}

// isTestHelp reports packages that exist for tests of any package.
func isTestHelp(directory string) bool {
	return directory == "internal/testenv" || directory == "internal/golden" || strings.HasSuffix(directory, "test")
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
				if !f.isTest && !within(f.directory, names(row[1])) && !strings.HasPrefix(f.directory, "test/") {
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

func within(directory string, packages []string) bool {
	for _, p := range packages {
		if covers(p+"/*", directory) {
			return true
		}
	}
	return false
}
