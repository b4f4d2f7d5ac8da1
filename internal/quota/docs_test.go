package quota

import (
	"flag"
	"fmt"
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
		rest = rest[:begin] + document() + rest[end:]
		if err := os.WriteFile(path, []byte(before+heading+rest), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, want := rest[begin:end], document(); got != want {
		t.Errorf("%s has the limits\n%swant\n%s(go test ./internal/quota -update writes them)", path, got, want)
	}
}

// Each limit has a separate resource, and the limit of an account is below that of all.
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

// document returns the limits as a table in Markdown.
func document() string {
	var b strings.Builder
	b.WriteString("| resource | in total | of one account | waiting | rate of one account | setting |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, l := range limits {
		total, each, queue, rate := amount(l.Total), amount(l.Each), amount(int64(l.Queue)), ""
		if l.Reserved > 0 {
			each = amount(l.Total - l.Reserved)
		}
		switch {
		case l.Resource == Redactions:
			total = "one for each processor"
		case l.Queue == Unbounded:
			queue = "any number"
		}
		switch {
		case l.Rate >= 1:
			rate = fmt.Sprintf("%g in a second, %d at once", l.Rate, l.Burst)
		case l.Rate > 0:
			rate = fmt.Sprintf("one in %g seconds, %d at once", 1/l.Rate, l.Burst)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.Resource, total, each, queue, rate, l.Settings)
	}
	return b.String()
}

// amount returns a number as text: empty for 0, with a comma between thousands, or in MiB.
func amount(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= 1000:
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}
