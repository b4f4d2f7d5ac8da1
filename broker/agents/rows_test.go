package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// lastRow is the highest number of a requirement about agents.
const lastRow = 64

var rowNames = regexp.MustCompile(`A-(\d{3})(?: to A-(\d{3}))?`)

// TestEveryRequirementHasATest looks in the tests for the name of each
// requirement about agents. testdata/rows_missing.txt lists those that have none
// yet, and why; a row that has a test by now must leave that list.
func TestEveryRequirementHasATest(t *testing.T) {
	root := testenv.RepoRoot(t)
	named := map[int]bool{}
	for _, pattern := range []string{"broker/agents/*_test.go", "broker/agents/*/*_test.go", "policies/*_test.go", "app/api/*_test.go", "sdk/python/tests/*.py"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests: %v", pattern, err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) == "rows_test.go" {
				continue
			}
			for _, name := range rowNames.FindAllStringSubmatch(string(source), -1) {
				first, _ := strconv.Atoi(name[1])
				last := max(first, atoi(name[2]))
				for n := first; n <= last; n++ {
					named[n] = true
				}
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "rows_missing.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var missing []int
	for line := range strings.Lines(string(raw)) {
		if name := rowNames.FindStringSubmatch(line); name != nil && strings.HasPrefix(line, "A-") {
			missing = append(missing, atoi(name[1]))
		}
	}
	for n := 1; n <= lastRow; n++ {
		row := fmt.Sprintf("A-%03d", n)
		switch listed := slices.Contains(missing, n); {
		case !named[n] && !listed:
			t.Errorf("no test names %s", row)
		case named[n] && listed:
			t.Errorf("%s has a test: remove it from rows_missing.txt", row)
		}
	}
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text) // what is no number is none
	return n
}
