package escape_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/golden"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// docsHead is the text of docs/attacks.md before its tables.
const docsHead = `# What is tried, and what stops it

Every attack is one file under test/escape/attacks, and its first lines are what this page says. ` + "`TestAttacks`" + `
runs all of them in real sandboxes, fresh ones and ones from the pool. It fails if one of them reaches something, or
ends in another way than the column "ends with" says. There, "nothing" means that the program ran to its end and has
reached nothing. The column "stopped by" explains this and is not tested. test/escape/README.md shows how the attacks
are judged (` + "`TestOracleSeesEveryWayOut`, `TestLeftoversAreSeen`" + `).
A star marks attacks that are also run without a sandbox, where they must succeed: their way of trying works
(` + "`TestAttacksSucceedOnHost`" + `).

This page is written by ` + "`go test ./test/escape -run Docs -update`" + `.
`

// TestDocs holds docs/attacks.md against the headers of the attacks.
func TestDocs(t *testing.T) {
	all := attacks(t)
	if len(all) < leastAttacks {
		t.Fatalf("got %d attacks, want at least %d", len(all), leastAttacks)
	}
	var page bytes.Buffer
	page.WriteString(docsHead)
	category := ""
	for _, a := range all {
		if a.category() != category {
			category = a.category()
			fmt.Fprintf(&page, "\n## %s\n\n| attack | tries | stopped by | ends with |\n|---|---|---|---|\n", category)
		}
		star := ""
		if a.onHost {
			star = "\\*"
		}
		fmt.Fprintf(&page, "| [%s](../test/escape/attacks/%s)%s | %s | %s | %s |\n", filepath.Base(a.name), a.file,
			star, a.tries, a.stoppedBy, strings.Join(a.want, ", "))
	}
	golden.Check(t, page.Bytes(), filepath.Join(testenv.RepoRoot(t), "docs", "attacks.md"))
}
