package code

import (
	"strings"
	"testing"
)

// A stated language is not guessed again, and a guess looks at the beginning of the code only.
func TestAGuessIsBounded(t *testing.T) {
	late := strings.Repeat("x\n", maxGuessed) + "import os\nprint(1)\n"
	for name, test := range map[string]struct{ said, code, want string }{
		"early":  {"", "import os\nprint(1)\n", "python"},
		"late":   {"", late, ""},
		"stated": {"node", late, "node"},
	} {
		if got := languageOf(test.said, test.code); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
