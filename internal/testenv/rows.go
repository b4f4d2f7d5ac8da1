package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Rows looks in tests for the name of each requirement from PREFIX-001 to the one
// numbered last, alone or as one of a span ("K-001 to K-003", in Python "K-001..003"). patterns are paths
// of tests below the repository's root, with wildcards; a file rows_test.go does
// not count. testdata/rows_missing.txt lists the requirements that have no test
// yet, one in a line, and why; one that has a test by now must leave that list.
func Rows(t *testing.T, prefix string, last int, patterns ...string) {
	t.Helper()
	names := regexp.MustCompile(prefix + `-(\d{3})(?:(?: to ` + prefix + `-|\.\.)(\d{3}))?`)
	named := map[int]bool{}
	for _, file := range rowFiles(t, patterns) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.FindAllStringSubmatch(string(source), -1) {
			first, _ := strconv.Atoi(name[1])
			end, _ := strconv.Atoi(name[2]) // 0 for a single row
			for n := first; n <= max(first, end); n++ {
				named[n] = true
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "rows_missing.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for line := range strings.Lines(string(raw)) {
		if at := names.FindStringIndex(line); at != nil && at[0] == 0 {
			missing = append(missing, line[:at[1]])
		}
	}
	for n := 1; n <= last; n++ {
		row := fmt.Sprintf("%s-%03d", prefix, n)
		switch listed := slices.Contains(missing, row); {
		case !named[n] && !listed:
			t.Errorf("no test names %s", row)
		case named[n] && listed:
			t.Errorf("%s has a test: remove it from rows_missing.txt", row)
		}
	}
}

func rowFiles(t *testing.T, patterns []string) []string {
	t.Helper()
	root := RepoRoot(t)
	var all []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests: %v", pattern, err)
		}
		for _, file := range files {
			if filepath.Base(file) != "rows_test.go" {
				all = append(all, file)
			}
		}
	}
	return all
}
