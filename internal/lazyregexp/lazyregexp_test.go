package lazyregexp

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// An invalid pattern fails every test of its package.
func TestAWrongExpressionPanicsInTests(t *testing.T) {
	defer func() {
		if fmt.Sprint(recover()) == "<nil>" {
			t.Error("a wrong expression went unnoticed")
		}
	}()
	New("(")
}

func TestItMatchesWhatRegexpMatches(t *testing.T) {
	lazy, plain := New(`(a+)(b)?`), regexp.MustCompile(`(a+)(b)?`)
	if lazy.String() != plain.String() {
		t.Errorf("got %s", lazy)
	}
	for _, text := range []string{"", "aab", "xaax ab", "b"} {
		var work sync.WaitGroup
		for range 8 { // one expression is used by many
			work.Go(func() {
				if got, want := lazy.FindAllStringSubmatch(text, -1),
					plain.FindAllStringSubmatch(text, -1); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%q: got %v, want %v", text, got, want)
				}
			})
		}
		work.Wait()
		if got, want := lazy.ReplaceAllString(text, "<$1>"), plain.ReplaceAllString(text, "<$1>"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Outside of tests nothing is compiled before it is used.
func TestOutsideOfTestsNothingIsCompiledAtTheStart(t *testing.T) {
	if os.Getenv("LAZYREGEXP_OUTSIDE") != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=TestAWrongExpressionPanicsInTests")
	cmd.Args[0] = "program" // its name decides
	cmd.Env = append(os.Environ(), "LAZYREGEXP_OUTSIDE=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "went unnoticed") {
		t.Errorf("got %v, %s, want that the expression is not compiled", err, out)
	}
}
