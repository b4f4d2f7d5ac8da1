package servers

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"pgregory.net/rapid"
)

func TestCondensedDiff(t *testing.T) {
	lorem := strings.TrimSpace(strings.Repeat("lorem ipsum dolor sit amet ", 250)) // 6,749 characters
	tests := []struct {
		name, diff string
		want       []string
		longest    int
	}{
		{"a short line stays whole", "--- a\n+++ b\n@@ -1 +1 @@\n-short one\n+short two\n",
			[]string{"-short one", "+short two"}, 20},
		{"a word within a long line", "--- a\n+++ b\n@@ -1 +1 @@\n-" + lorem + " reads a file " + lorem + "\n+" +
			lorem + " deletes a file " + lorem + "\n",
			[]string{"lorem ipsum dolor sit amet ⟦reads⟧ a file lorem",
				"lorem ipsum dolor sit amet ⟦deletes⟧ a file lorem"}, 300},
		{"what was added at the end", "--- a\n+++ b\n@@ -1 +1 @@\n-" + lorem + "\n+" + lorem + " and sends it\n",
			[]string{"⟦ and sends it⟧"}, 200},
		{"a long line beside the change", "--- a\n+++ b\n@@ -1,2 +1,2 @@\n " + lorem + "\n-x\n+y\n",
			[]string{"… (6750 characters, unchanged)"}, 200},
		{"a new long line is shown whole", "--- a\n+++ b\n@@ -1 +1,2 @@\n x\n+" + lorem + "\n", []string{"+" + lorem},
			8000},
		{"a changed and a new one", "--- a\n+++ b\n@@ -1 +1,2 @@\n-" + lorem + " x\n+" + lorem + " y\n+" + lorem + "\n",
			[]string{"⟦y⟧", "+" + lorem}, 8000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := string(condense([]byte(test.diff), verb.Painter{}))
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
			for line := range strings.Lines(got) {
				if len(line) > test.longest {
					t.Errorf("got a line of %d characters, want at most %d", len(line), test.longest)
				}
			}
		})
	}
}

// Both texts can be restored from the result: the kept words of both are equal, and the words of
// each text joined are the text.
func TestNothingThatChangedIsLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ab]{1,3}[ ."]){0,40}`)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		old, current := words(before), words(after)
		if strings.Join(old, "") != before || strings.Join(current, "") != after {
			t.Fatal("the words are not the text")
		}
		inOld, inNew := common(old, current)
		keep := func(text []string, kept []bool) (same []string) {
			for i, word := range text {
				if kept[i] {
					same = append(same, word)
				}
			}
			return same
		}
		if a, b := strings.Join(keep(old, inOld), "|"), strings.Join(keep(current, inNew), "|"); a != b {
			t.Fatalf("kept %q of one and %q of the other", a, b)
		}
		shown, _ := changedWords(before, after, verb.Painter{})
		for i, word := range old {
			if !inOld[i] && !strings.Contains(shown, word) {
				t.Fatalf("%q changed and is not shown in %q", word, shown)
			}
		}
	})
}
