package quota

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of limits into docs/serving.md")

// The table of shared resources in docs/serving.md is that of the code (issue 25).
func TestLimitsAreDocumented(t *testing.T) {
	const path, heading = "../../docs/serving.md", "### Shared resources\n"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), heading)
	begin, end := strings.Index(rest, "\n| "), strings.Index(rest, "|\n\n")
	if !ok || begin < 0 || end < begin {
		t.Fatalf("%s has no table of shared resources", path)
	}
	begin, end = begin+1, end+2
	if *update {
		rest = rest[:begin] + Document() + rest[end:]
		if err := os.WriteFile(path, []byte(before+heading+rest), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, want := rest[begin:end], Document(); got != want {
		t.Errorf("%s has the limits\n%swant\n%s(go test ./internal/quota -update writes them)", path, got, want)
	}
}

// Each limit has a resource of its own, and the limit of an account is below that of all.
func TestLimits(t *testing.T) {
	seen := map[Resource]bool{}
	for _, l := range limits {
		if l.Resource == "" || seen[l.Resource] || For(l.Resource) != l {
			t.Errorf("the limits of %q are ambiguous", l.Resource)
		}
		seen[l.Resource] = true
		if l.Total > 0 && l.Each >= l.Total {
			t.Errorf("one account can use all %s: %d of %d", l.Resource, l.Each, l.Total)
		}
	}
}
