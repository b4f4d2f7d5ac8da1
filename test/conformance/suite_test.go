// Package conformance runs the protocol's official suites against Airlock: the
// conformance suite against its MCP face and its upstream client, the Inspector's
// command line against `airlock mcp`. The file known-failures lists known failures with
// their reasons.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// revisions are those whose requirements the suite checks.
var revisions = []string{"2025-11-25", "2026-07-28"}

// suites returns the directory with the suites and the Node to run them with, which
// need a newer one than the machine may have.
func suites(t *testing.T) (dir, node string) {
	t.Helper()
	testenv.Sandbox(t) // asked for together with everything that needs to be set up
	dir = filepath.Join(testenv.RepoRoot(t), "test", "conformance")
	return dir, testenv.SuiteNode(t)
}

// A failure that is not listed is an error, and so is an entry that does not fail.
func TestKnownFailuresAreExact(t *testing.T) {
	got := map[string][]check{
		"one":   {{ID: "good", Status: "SUCCESS"}, {ID: "bad", Status: "FAILURE"}, {ID: "meant", Status: "WARNING"}},
		"two":   {{ID: "any", Status: "FAILURE"}, {ID: "note", Status: "INFO"}, {ID: "left out", Status: "SKIPPED"}},
		"three": {{ID: "good", Status: "SUCCESS"}},
	}
	tests := []struct {
		name     string
		expected []string
		want     []string // beginnings
	}{
		{"all listed", []string{"one:bad", "one:meant", "two"}, nil},
		{"one not listed", []string{"one:bad", "two"}, []string{"one:meant fails (WARNING)"}},
		{"one too many", []string{"one:bad", "one:meant", "one:good", "two", "three"},
			[]string{"one:good is known to fail", "three is known to fail"}},
		{"none listed", nil, []string{"one:bad fails", "one:meant fails", "two:any fails"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expected := map[string]bool{}
			for _, name := range test.expected {
				expected[name] = true
			}
			found := compare(got, expected)
			if len(found.problems) != len(test.want) || found.passed != 2 || found.known+len(found.problems) < 3 {
				t.Fatalf("got %+v", found)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(found.problems[i], want) {
					t.Errorf("got %q, want %q", found.problems[i], want)
				}
			}
		})
	}
}

// build compiles a program and returns its path.
func build(t *testing.T, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	return program
}

// legs are the names that known-failures.yaml uses.
var legs = []string{"face", "passthrough-http", "passthrough-stdio", "upstream-client"}

// leg is one side of Airlock that the suite is run against.
type leg struct {
	name     string
	role     string   // the suite's command: server or client
	against  []string // its arguments that select the tested program
	revision string
}

// run runs all scenarios that a revision requires, and compares the failures with the known
// failures.
func (l leg) run(t *testing.T) {
	dir, _ := suites(t)
	pkg := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance")
	got, out := l.results(t, nil, "--requirements", l.revision)
	if missing := without(required(t, pkg, l.revision, l.role), slices.Collect(maps.Keys(got))); len(missing) > 0 {
		t.Fatalf("the suite did not run %q:\n%s", missing, out)
	}
	known := l.knownFailures(t, slices.Collect(maps.Keys(got)))
	c := compare(got, known)
	// The suite has time limits of a second and a half and less, which a busy machine
	// may miss: failed scenarios are repeated with longer ones.
	patient := []string{"--import", filepath.Join(dir, "patient.mjs")}
	for _, scenario := range c.surprises {
		again, _ := l.results(t, patient, "--scenario", scenario, "--spec-version", l.revision, "--force")
		if len(again[scenario]) > 0 {
			got[scenario] = again[scenario]
		}
	}
	if len(c.surprises) > 0 {
		t.Logf("%s against %s: tried again: %q", l.name, l.revision, c.surprises)
		c = compare(got, known)
	}
	for _, problem := range c.problems {
		t.Error(problem)
	}
	t.Logf("%s against %s: %d scenarios, %d checks passed, %d known failures", l.name, l.revision, len(got), c.passed,
		c.known)
}

// results runs the suite, with options of Node's, and returns what it found, by scenario,
// and what it printed.
func (l leg) results(t *testing.T, options []string, which ...string) (map[string][]check, []byte) {
	t.Helper()
	dir, node := suites(t)
	directory := t.TempDir()
	args := []string{filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		l.role, "--output-dir", directory}
	suite := exec.CommandContext(t.Context(), node, slices.Concat(options, args, which, l.against)...)
	suite.Dir = t.TempDir()
	out, err := suite.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) { // failures are in the results
		t.Fatalf("starting the suite: %v\n%s", err, out)
	}
	return readResults(t, directory, l.role), out
}

// comparison is what fails and is not known to, and what is known to and does not.
type comparison struct {
	problems      []string
	surprises     []string // scenarios with a failure that is not known
	passed, known int      // checks
}

// compare returns unknown failures, and known failures that did not occur.
func compare(got map[string][]check, expected map[string]bool) comparison {
	var found comparison
	seen := map[string]bool{}
	for _, scenario := range slices.Sorted(maps.Keys(got)) {
		for _, c := range got[scenario] {
			name, whole := scenario+":"+c.ID, scenario
			switch {
			case c.passed():
				found.passed++
			case !c.failed(): // not applicable, or informational
			case expected[name]:
				seen[name] = true
				found.known++
			case expected[whole]:
				seen[whole] = true
				found.known++
			default:
				found.problems = append(found.problems, fmt.Sprintf("%s fails (%s): %s", name, c.Status, c.Message))
				found.surprises = append(found.surprises, scenario)
			}
		}
	}
	found.surprises = slices.Compact(found.surprises)
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if !seen[name] {
			found.problems = append(found.problems,
				name+" is known to fail, and does not: remove it from known-failures.yaml")
		}
	}
	return found
}

// check is one result of a scenario.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

func (c check) passed() bool { return c.Status == "SUCCESS" }

func (c check) failed() bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// when is the end of a result directory's name.
var when = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// readResults reads what the suite found, by scenario.
func readResults(t *testing.T, results, role string) map[string][]check {
	t.Helper()
	found := map[string][]check{}
	err := filepath.WalkDir(results, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		directory, err := filepath.Rel(results, filepath.Dir(path))
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []check
		if err := json.Unmarshal(text, &checks); err != nil {
			return fmt.Errorf("reading %q: %w", path, err)
		}
		name := when.ReplaceAllString(directory, "")
		if role == "server" {
			name = strings.TrimPrefix(name, "server-")
			// A scenario may itself begin with the word.
			if strings.HasPrefix(directory, "server-server-") {
				name = "server-" + strings.TrimPrefix(name, "server-")
			}
		}
		found[name] = append(found[name], checks...)
		return nil
	})
	if err != nil {
		t.Fatalf("reading the suite's results: %v", err)
	}
	return found
}

// required returns the scenarios that a revision has for a role, those included that
// the suite runs and does not score.
func required(t *testing.T, pkg, revision, role string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pkg, "requirements", revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Server    []string `yaml:"server"`
		Client    []string `yaml:"client"`
		NotScored []struct {
			Scenario string `yaml:"scenario"`
			Leg      string `yaml:"leg"`
		} `yaml:"not_scored"`
	}
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	names := set.Server
	if role == "client" {
		names = set.Client
	}
	for _, s := range set.NotScored {
		if s.Leg == role {
			names = append(names, s.Scenario)
		}
	}
	if len(names) == 0 {
		t.Fatalf("the suite requires nothing of a %s in %s", role, revision)
	}
	return names
}

// knownFailures returns the checks, or whole scenarios, of the scenarios that ran which
// known-failures.yaml lists for a leg.
func (l leg) knownFailures(t *testing.T, ran []string) map[string]bool {
	t.Helper()
	const path = "known-failures.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Reason   string   `yaml:"reason"`
		Legs     []string `yaml:"legs"`
		Revision string   `yaml:"revision"` // the only one; empty for each in which the scenarios run
		Checks   []string `yaml:"checks"`
	}
	if err := yaml.Load(text, &groups, yaml.WithKnownFields()); err != nil {
		t.Fatalf("reading %q: %v", path, err)
	}
	known := map[string]bool{}
	for _, g := range groups {
		if g.Reason == "" || len(g.Checks) == 0 || len(without(g.Legs, legs)) > 0 || g.Revision != "" &&
			!slices.Contains(revisions, g.Revision) {
			t.Errorf("%s: the group %q has no reason or no checks, or is of a leg or revision that is not there", path,
				g.Reason)
		}
		if !slices.Contains(g.Legs, l.name) || g.Revision != "" && g.Revision != l.revision {
			continue
		}
		for _, name := range g.Checks {
			if scenario, _, _ := strings.Cut(name, ":"); slices.Contains(ran, scenario) {
				known[name] = true
			}
		}
	}
	return known
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// background runs a program until the test ends.
func background(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program, args...)
	if err := command.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // it was killed
	})
}
