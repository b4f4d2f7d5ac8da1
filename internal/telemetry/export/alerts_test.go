package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

const alertSeries = "testdata/alerts.yaml"

// Prometheus' own tool accepts the rules, and each alert is raised for its series and for nothing else (issue 27.15).
func TestAlertsAreRaised(t *testing.T) {
	program := promtool(t)
	for _, args := range [][]string{
		{"check", "rules", "--lint-fatal", filepath.Join(testenv.RepoRoot(t),
			"packaging/prometheus/airlock.rules.yaml")},
		{"test", "rules", alertSeries},
	} {
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func promtool(t *testing.T) string {
	t.Helper()
	if program, err := exec.LookPath("promtool"); err == nil {
		return program
	}
	program := filepath.Join(testenv.RepoRoot(t), "bin/promtool")
	if _, err := os.Stat(program); err != nil {
		t.Skip("needs promtool: run `make promtool`")
	}
	return program
}

// Each alert has a series that raises it and one that does not.
func TestEachAlertIsTested(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "packaging/prometheus/airlock.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	series, err := os.ReadFile(alertSeries)
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) < 10 {
		t.Errorf("found only %d alerts", len(alerts))
	}
	for _, alert := range alerts {
		quiet := strings.Count(string(series), "alertname: "+alert[1]+"}")
		raised := strings.Count(string(series), "alertname: "+alert[1]+"\n        exp_alerts:")
		if quiet == 0 || raised == 0 {
			t.Errorf("%s is raised in %d tests and not raised in %d, want one of each", alert[1], raised, quiet)
		}
	}
}
