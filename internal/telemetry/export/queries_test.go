package export_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/telemetry/export"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

var (
	metricName = regexp.MustCompile(`\b(?:airlock|mcp|process)_[a-z_]+\b`)
	labelName  = regexp.MustCompile(`\{\{[^}]*\}\}|by \([^)]*\)|\{[^}]*\}`)
	documented = regexp.MustCompile("`((?:airlock|mcp)\\.[a-z_.]+)`")
)

// issue 27: all metrics in the queries of the alert rules and of the dashboard exist: those of Airlock are
// documented, which another test compares with the code, and those of the process are served.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	root := testenv.RepoRoot(t)
	e, err := export.Open(t.Context(), export.Options{Prometheus: true, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	answer := httptest.NewRecorder()
	e.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	page, err := os.ReadFile(filepath.Join(root, "docs/telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, m := range documented.FindAllStringSubmatch(string(page), -1) {
		known = append(known, strings.ReplaceAll(m[1], ".", "_"))
	}
	exists := func(name string) bool {
		if strings.HasPrefix(name, "process_") {
			return strings.Contains(answer.Body.String(), "\n"+name+" ")
		}
		for _, k := range known {
			switch strings.TrimPrefix(name, k) {
			case "", "_bytes", "_ratio", "_total", "_seconds", "_seconds_bucket", "_seconds_count":
				return true
			}
		}
		return false
	}
	queries := readQueries(t, root)
	if len(queries) < 20 {
		t.Errorf("found only %d queries", len(queries))
	}
	for _, query := range queries {
		names := metricName.FindAllString(labelName.ReplaceAllString(query, ""), -1)
		if len(names) == 0 {
			t.Errorf("%q uses no metric", query)
		}
		for _, name := range names {
			if !exists(name) {
				t.Errorf("%q uses %s, which does not exist", query, name)
			}
		}
	}
}

// readQueries returns the queries of the alert rules and of the dashboard.
func readQueries(t *testing.T, root string) (queries []string) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Expr string }
		}
	}
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	for file, read := range map[string]func([]byte) error{
		"packaging/prometheus/airlock.rules.yaml": func(text []byte) error { return yaml.Unmarshal(text, &rules) },
		"packaging/grafana/airlock.json":          func(text []byte) error { return json.Unmarshal(text, &board) },
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = read(text)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			queries = append(queries, rule.Expr)
		}
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}
