package sqlread

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 24: the Go and Python implementations agree. The port in the Python engine gives the same
// answers for the corpus and for generated texts.
func TestThePythonEngineJudgesAlike(t *testing.T) {
	all := corpus(t)
	g := generator{rand.New(rand.NewPCG(25, 27)), all}
	texts := make([]string, 0, len(all)+20_000)
	for _, entry := range all {
		texts = append(texts, entry.SQL)
	}
	for len(texts) < cap(texts) {
		texts = append(texts, strings.ToValidUTF8(g.text(), ""))
	}
	var in bytes.Buffer
	for _, text := range texts {
		line, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	port := filepath.Join(testenv.RepoRoot(t), "sdk", "python", "src", "qwed_new", "engines", "sql", "reads.py")
	cmd := exec.Command(find(t, "pip", "python3"), "-B", "testdata/judge.py", port)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(texts) {
		t.Fatalf("%d answers to %d texts", len(answers), len(texts))
	}
	reads := 0
	for i, text := range texts {
		verdict := sqltext.Judge(text)
		if isRead := answers[i] == `""`; isRead != (verdict.Effect == sqltext.Read) {
			t.Errorf("%q: Go has %s (%s), Python %s", text, verdict.Effect, verdict.Reason, answers[i])
		} else if isRead {
			reads++
		}
	}
	if reads < 500 {
		t.Errorf("%d of %d texts are reads: too few to compare", reads, len(texts))
	}
}
