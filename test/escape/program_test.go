package escape_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// program is what a sandbox is given to run.
type program struct {
	language string // "python" or "node"
	code     string
}

// program assembles the attack: the prelude of its language, then its text with the places
// of the bait. Python runs a shell script; every line of its output names something that it
// reached.
func (a attack) program(t *testing.T, b *bait) program {
	t.Helper()
	source := b.fill(a.source)
	switch filepath.Ext(a.file) {
	case ".mjs":
		return program{"node", prelude(t, "prelude.mjs") + source}
	case ".sh":
		return program{"python", prelude(t, "prelude.py") + "source = " + strconv.QuoteToASCII(source) + shellRunner}
	default:
		return program{"python", prelude(t, "prelude.py") + source}
	}
}

// shellRunner runs the script in source.
const shellRunner = `
got = subprocess.run(["/bin/sh", "-c", source], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
for line in got.stderr.splitlines():
    print("refused:", line)
result += got.stdout.splitlines()[:50]
`

func prelude(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("attacks", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}
