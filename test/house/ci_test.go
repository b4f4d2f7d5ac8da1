package house_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// TestSummaryReportsFlakyPackages runs the program that writes the last lines of
// continuous integration.
func TestSummaryReportsFlakyPackages(t *testing.T) {
	const allPass = "ok  \texample.org/a/x\t1.2s\n?   \texample.org/a/y\t[no test files]\n"
	const oneFails = "ok  \texample.org/a/x\t1.2s\n--- FAIL: TestPool (0.01s)\n    --- FAIL: TestPool/part " +
		"(0.01s)\nFAIL\nFAIL\texample.org/a/z\t0.4s\nFAIL\n"
	tests := []struct {
		name, first, second, want string
		fails                     bool
	}{
		{"everything passes", allPass, "", "flaky packages: 0\npackages: 1 passed, 0 failed, 1 skipped\n", false},
		{"one passes in its second try", oneFails, "ok  \texample.org/a/z\t0.2s\n",
			"flaky packages: 1 (failed beside others, passed alone in a second try: example.org/a/z)\n" +
				"tests that failed in the first try: TestPool\n" +
				"packages: 2 passed, 0 failed, 0 skipped\n", false},
		{"one fails twice", oneFails, "FAIL\texample.org/a/z\t0.2s\n",
			"flaky packages: 0\ntests that failed in the first try: TestPool\n" +
				"packages that failed twice, or could not be built: example.org/a/z\n" +
				"packages: 1 passed, 1 failed, 0 skipped\n", true},
		{"one does not end", "ok  \texample.org/a/x\t1.2s\npanic: test timed out after 45m0s\n\trunning tests:\n" +
			"\t\tTestPool (44m0s)\n\t\tTestPool/part (44m0s)\n\ngoroutine 1 [running]:\n" +
			"FAIL\texample.org/a/z\t2700s\nFAIL\n",
			"FAIL\texample.org/a/z\t0.2s\n", "flaky packages: 0\ntests that failed in the first try: TestPool\n" +
				"packages that failed twice, or could not be built: example.org/a/z\n" +
				"packages: 1 passed, 1 failed, 0 skipped\n", true},
		{"nothing ran", "", "", "flaky packages: 0\npackages: 0 passed, 0 failed, 0 skipped\n", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{}
			for name, text := range map[string]string{"1": test.first, "2": test.second} {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if args = append(args, filepath.Join(dir, "1")); test.second != "" {
				args = append(args, filepath.Join(dir, "2"))
			}
			got, err := exec.CommandContext(t.Context(), filepath.Join(testenv.RepoRoot(t), "build", "summary"),
				args...).Output()
			if string(got) != test.want || (err != nil) != test.fails {
				t.Errorf("got %q, %v, want %q, failure %t", got, err, test.want, test.fails)
			}
		})
	}
}

// runCI runs .ci/run with another make, and with environment beside that of the test.
func runCI(t *testing.T, fake string, environment ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "make"), []byte("#!/usr/bin/env bash\n"+fake+"\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(testenv.RepoRoot(t), ".ci", "run"))
	cmd.Env = append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestContinuousIntegrationReportsFlakes runs .ci/run with a make whose tests
// fail in their first try, and without the database of vulnerabilities.
func TestContinuousIntegrationReportsFlakes(t *testing.T) {
	out, err := runCI(t, `case $1 in
test) printf 'ok  \ta/b\t1s\n--- FAIL: TestX (0.1s)\nFAIL\ta/c\t0.2s\n'; exit 2 ;;
try) [[ "$PACKAGE $RUN" == 'a/c ^(TestX)$' ]] && printf 'ok  \ta/c\t0.2s\n' ;;
vulnerabilities) echo 'vulnerabilities: NOT CHECKED' >&2; exit 2 ;;
esac`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `left out: the look for known vulnerabilities, because their database cannot be reached
second tries: 1
flaky packages: 1 (failed beside others, passed alone in a second try: a/c)
tests that failed in the first try: TestX
packages: 2 passed, 0 failed, 0 skipped
`
	if !strings.HasSuffix(out, want) {
		t.Errorf("the last lines: got\n%s\nwant\n%s", out, want)
	}
}

// TestContinuousIntegrationEnds runs .ci/run with packages that need more than its time, of which one has failed or
// none has.
func TestContinuousIntegrationEnds(t *testing.T) {
	const over = "left out: the packages of make test that do not appear above, because time was over\n"
	const rest = "left out: race, because time was over\nleft out: fuzz, because time was over\nflaky packages: 0\n"
	for printed, want := range map[string]string{
		`ok  \ta/b\t1s\n--- FAIL: TestX (0.1s)\nFAIL\ta/c\t0.2s\n`: over +
			"left out: the second try of a/c, because time was over\nsecond tries: 0\n" + rest +
			"tests that failed in the first try: TestX\npackages that failed twice, or could not be built: a/c\n" +
			"packages: 1 passed, 1 failed, 0 skipped\n",
		`ok  \ta/b\t1s\n`: over + "second tries: 0\n" + rest + "packages: 1 passed, 0 failed, 0 skipped\n",
	} {
		out, err := runCI(t, "[[ $1 != test ]] || { printf '"+printed+"'; exec sleep 600; }", "LIMIT=5")
		if err == nil || !strings.HasSuffix(out, want) {
			t.Errorf("the last lines: got %v\n%s\nwant an error and\n%s", err, out, want)
		}
	}
}
