// Package console drives the console of the real program in a real Chromium.
package console

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// browser is a Chromium with one page, driven by drive.mjs. It ends with the test.
// Whatever the page is asked for fails the test where it does not come within a minute.
type browser struct {
	in  *json.Encoder
	out *bufio.Scanner
}

// answer is what drive.mjs says about a step.
type answer struct {
	Error, Shown   string
	Address, Title string
	Status         int
	Text           string
	Path, Name     string
	Value          json.RawMessage
}

// profile is how a browser begins: with nothing of before.
type profile struct {
	Dark   bool   `json:"dark"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Time   string `json:"time,omitempty"` // at which the page's clock stands; empty: it runs
}

// openBrowser starts one. names are NAME=ADDRESS: no other name resolves. A problem of
// a page that the test has not looked at fails the test.
func openBrowser(t *testing.T, names ...string) *browser {
	t.Helper()
	chromium, node := testenv.Browser(t)
	command := exec.Command(node, append([]string{filepath.Join(testenv.RepoRoot(t), "test", "console", "drive.mjs"), chromium}, names...)...)
	var said strings.Builder
	command.Stderr = &said
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	b := &browser{json.NewEncoder(stdin), bufio.NewScanner(stdout)}
	b.out.Buffer(nil, 64<<20)
	t.Cleanup(func() {
		if !t.Failed() {
			b.noProblems(t)
		}
		stdin.Close()
		if err := command.Wait(); err != nil || said.Len() > 0 {
			t.Errorf("the browser's driver: %v\n%s", err, said.String())
		}
	})
	b.begin(t, profile{})
	return b
}

// do has one step done.
func (b *browser) do(t *testing.T, step string, options map[string]any) answer {
	t.Helper()
	request := map[string]any{"step": step}
	for name, value := range options {
		request[name] = value
	}
	if err := b.in.Encode(request); err != nil {
		t.Fatalf("%s: the browser has ended: %v", step, err)
	}
	if !b.out.Scan() {
		t.Fatalf("%s: the browser has ended: %v", step, b.out.Err())
	}
	var a answer
	if err := json.Unmarshal(b.out.Bytes(), &a); err != nil {
		t.Fatalf("%s: got %s: %v", step, b.out.Bytes(), err)
	}
	if a.Error != "" {
		t.Fatalf("%s %v: %s\nat %s, which shows:\n%s", step, options, a.Error, a.Address, a.Shown)
	}
	return a
}

// begin takes a profile in which nothing has been opened.
func (b *browser) begin(t *testing.T, p profile) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var options map[string]any
	if err := json.Unmarshal(raw, &options); err != nil {
		t.Fatal(err)
	}
	b.do(t, "profile", options)
}

// open goes to an address and returns the status of the page.
func (b *browser) open(t *testing.T, address string) int {
	t.Helper()
	return b.do(t, "open", map[string]any{"address": address}).Status
}

// click clicks what has a role and exactly this accessible name.
func (b *browser) click(t *testing.T, role, name string) {
	t.Helper()
	b.do(t, "click", map[string]any{"role": role, "name": name})
}

// fill writes into the field with a label.
func (b *browser) fill(t *testing.T, label, value string) {
	t.Helper()
	b.do(t, "fill", map[string]any{"label": label, "value": value})
}

// sees waits until each text is shown.
func (b *browser) sees(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		b.do(t, "sees", map[string]any{"text": text})
	}
}

// unsees waits until a text is shown no more.
func (b *browser) unsees(t *testing.T, text string) {
	t.Helper()
	b.do(t, "unsees", map[string]any{"text": text})
}

// evaluate runs a JavaScript expression in the page and decodes its value into v.
func (b *browser) evaluate(t *testing.T, code string, v any) {
	t.Helper()
	got := b.do(t, "runs", map[string]any{"code": code}).Value
	if err := json.Unmarshal(got, v); err != nil {
		t.Fatalf("%s: got %s: %v", code, got, err)
	}
}

// problems returns and forgets what went wrong in the page since the last call.
func (b *browser) problems(t *testing.T) []string {
	t.Helper()
	var list []string
	got := b.do(t, "problems", nil).Value
	if err := json.Unmarshal(got, &list); err != nil {
		t.Fatalf("got %s: %v", got, err)
	}
	return list
}

// noProblems fails for each problem but those that contain an expected text.
func (b *browser) noProblems(t *testing.T, expected ...string) {
	t.Helper()
	for _, problem := range b.problems(t) {
		if !slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(problem, text) }) {
			t.Errorf("the page has a problem: %s", problem)
		}
	}
}

// TestDriverEndsWithItsTest starts a browser as a test does that fails at once.
func TestDriverEndsWithItsTest(t *testing.T) {
	chromium, node := testenv.Browser(t)
	command := exec.Command(node, filepath.Join(testenv.RepoRoot(t), "test", "console", "drive.mjs"), chromium)
	command.Stdin, command.Stderr = strings.NewReader(`{"step":"profile"}`+"\n"+`{"step":"open","address":"about:blank"}`+"\n"), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(out), "\n"); got != 2 {
		t.Errorf("got %d answers, want 2:\n%s", got, out)
	}
}
