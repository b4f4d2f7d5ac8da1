// Package browser drives a real Chromium in tests, with playwright-core.
package browser

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Browser is a Chromium with one page, driven by drive.mjs. It ends with its test. Every
// step fails the test if it takes more than a minute.
type Browser struct {
	// Expected are parts of problems that pages may have at any time.
	Expected []string

	driver *testenv.Program
}

// Answer is the result of a step in drive.mjs.
type Answer struct {
	Error, Shown   string
	Address, Title string
	Status         int
	Text           string
	Path, Name     string
	Value          json.RawMessage
}

// Profile is how a browser begins: with nothing of before.
type Profile struct {
	Dark   bool   `json:"dark"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Time   string `json:"time,omitempty"` // at which the page's clock stands; empty: it runs
}

// Open starts one. names are NAME=ADDRESS: no other name resolves. A problem of a page
// that the test has not looked at fails the test. As with testenv.Sandbox, the test is
// skipped unless AIRLOCK_TEST_SANDBOX=1 asks for it; asked for and impossible, it fails.
func Open(t *testing.T, names ...string) *Browser {
	t.Helper()
	command := driver(t, names...)
	b := &Browser{driver: testenv.StartProgram(t, command)}
	t.Cleanup(func() {
		if !t.Failed() {
			b.NoProblems(t)
		}
		if err := b.driver.End(); err != nil || b.driver.Err.String() != "" {
			t.Errorf("the browser's driver: %v\n%s", err, b.driver.Err)
		}
	})
	b.Begin(t, Profile{})
	return b
}

// Do has one step done.
func (b *Browser) Do(t *testing.T, step string, options map[string]any) Answer {
	t.Helper()
	request := map[string]any{"step": step}
	maps.Copy(request, options)
	line, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.driver.Ask(line)
	if err != nil {
		t.Fatalf("%s: the browser has ended: %v", step, err)
	}
	var a Answer
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("%s: got %s: %v", step, answer, err)
	}
	if a.Error != "" {
		t.Fatalf("%s %v: %s\nat %s, which shows:\n%s", step, options, a.Error, a.Address, a.Shown)
	}
	return a
}

// Begin takes a profile in which nothing has been opened.
func (b *Browser) Begin(t *testing.T, p Profile) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var options map[string]any
	if err := json.Unmarshal(raw, &options); err != nil {
		t.Fatal(err)
	}
	b.Do(t, "profile", options)
}

// Goto goes to an address and returns the status of the page.
func (b *Browser) Goto(t *testing.T, address string) int {
	t.Helper()
	return b.Do(t, "open", map[string]any{"address": address}).Status
}

// Click clicks what has a role and exactly this accessible name.
func (b *Browser) Click(t *testing.T, role, name string) {
	t.Helper()
	b.Do(t, "click", map[string]any{"role": role, "name": name})
}

// Fill writes into the field with a label.
func (b *Browser) Fill(t *testing.T, label, value string) {
	t.Helper()
	b.Do(t, "fill", map[string]any{"label": label, "value": value})
}

// Sees waits until each text is shown.
func (b *Browser) Sees(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		b.Do(t, "sees", map[string]any{"text": text})
	}
}

// Unsees waits until a text is shown no more.
func (b *Browser) Unsees(t *testing.T, text string) {
	t.Helper()
	b.Do(t, "unsees", map[string]any{"text": text})
}

// Evaluate runs a JavaScript expression in the page and decodes its value into v.
func (b *Browser) Evaluate(t *testing.T, code string, v any) {
	t.Helper()
	got := b.Do(t, "runs", map[string]any{"code": code}).Value
	if err := json.Unmarshal(got, v); err != nil {
		t.Fatalf("%s: got %s: %v", code, got, err)
	}
}

// Axe returns the violations of the rules of axe-core on the page, one line for each element.
func (b *Browser) Axe(t *testing.T) []string {
	t.Helper()
	var list []string
	got := b.Do(t, "axe", nil).Value
	if err := json.Unmarshal(got, &list); err != nil {
		t.Fatalf("got %s: %v", got, err)
	}
	return list
}

// Problems returns and forgets what went wrong in the page since the last call.
func (b *Browser) Problems(t *testing.T) []string {
	t.Helper()
	var list []string
	got := b.Do(t, "problems", nil).Value
	if err := json.Unmarshal(got, &list); err != nil {
		t.Fatalf("got %s: %v", got, err)
	}
	return list
}

// NoProblems fails for each problem but those that contain an expected text.
func (b *Browser) NoProblems(t *testing.T, expected ...string) {
	t.Helper()
	expected = slices.Concat(expected, b.Expected)
	for _, problem := range b.Problems(t) {
		if !slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(problem, text) }) {
			t.Errorf("the page has a problem: %s", problem)
		}
	}
}

// driver is drive.mjs, about to be started. `make test` installs what it needs.
func driver(t *testing.T, names ...string) *exec.Cmd {
	t.Helper()
	if !testenv.WantsSandboxes() {
		t.Skip("drives a real browser: run `make test`, or set AIRLOCK_TEST_SANDBOX=1")
	}
	here := filepath.Join(testenv.RepoRoot(t), "test", "browser")
	_, err := os.Stat(filepath.Join(here, "node_modules", "playwright-core", "package.json"))
	chromium, err1 := exec.LookPath("chromium")
	node, err2 := exec.LookPath("node")
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatalf("browser tests were asked for, but %v (run `make browser` first)", err)
	}
	return exec.Command(node, append([]string{filepath.Join(here, "drive.mjs"), chromium}, names...)...)
}
