package telemetry

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// inCode are names of spans, metrics and attributes in the texts of a Go file.
var inCode = regexp.MustCompile(`"((?:airlock|mcp|gen_ai|network)\.[a-z_.]+)"`)

func TestEveryNameIsDocumented(t *testing.T) {
	root := testenv.RepoRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range []string{"internal/telemetry/span.go", "internal/telemetry/metrics.go",
		"internal/telemetry/request.go", "app/health/levels.go"} {
		code, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inCode.FindAllStringSubmatch(string(code), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 20 {
		t.Fatalf("found only %q", names)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/telemetry.md does not name %s", name)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(airlock\\.[a-z_.]+)`").FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("docs/telemetry.md names %s, which is nowhere in the code", m[1])
		}
	}
}

// from is a carrier with these keys.
func from(keys map[string]string) Carrier {
	return func(key string) string { return keys[key] }
}

func TestOnlyAValidTraceIsContinued(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, c := range map[string]struct {
		carriers []Carrier
		want     string // the trace; empty: a new one
	}{
		"in _meta": {[]Carrier{from(map[string]string{"traceparent": "00-" + id + "-00f067aa0ba902b7-01"})},
			id},
		"in the header": {[]Carrier{from(nil),
			from(map[string]string{"traceparent": "00-" + id + "-00f067aa0ba902b7-00"})}, id},
		"nowhere": {[]Carrier{from(nil)}, ""},
		"all zero": {[]Carrier{from(
			map[string]string{"traceparent": "00-00000000000000000000000000000000-00f067aa0ba902b7-01"})}, ""},
		"upper case": {[]Carrier{from(map[string]string{"traceparent": "00-" + strings.ToUpper(id) +
			"-00f067aa0ba902b7-01"})}, ""},
		"with a line break": {[]Carrier{from(map[string]string{"traceparent": "00-" + id + "-00f067aa0ba902b7-01\n"})},
			""},
		"a text of a MiB": {[]Carrier{from(map[string]string{"traceparent": strings.Repeat("0", 1<<20)})}, ""},
		"a long tracestate": {[]Carrier{from(map[string]string{"traceparent": "00-" + id + "-00f067aa0ba902b7-01",
			"tracestate": strings.Repeat("a=b,", 1<<18)})}, id},
		"a wrong tracestate": {[]Carrier{from(map[string]string{"traceparent": "00-" + id + "-00f067aa0ba902b7-01",
			"tracestate": "\x00"})}, id},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := Receive(context.Background(), Request{Method: "ping", Transport: "pipe"}, c.carriers...)
			defer end("")
			got := TraceID(ctx)
			if c.want != "" && got != c.want || len(got) != 32 || c.want == "" && got == id {
				t.Errorf("got the trace %s, want %q", got, c.want)
			}
			passed := map[string]string{}
			Pass(ctx, func(key, value string) { passed[key] = value })
			if c.want != "" && !strings.Contains(passed["traceparent"], c.want) {
				t.Errorf("passed on: %v", passed)
			}
			if len(passed["tracestate"]) > 1<<10 || passed["baggage"] != "" {
				t.Errorf("passed on: %v", passed)
			}
		})
	}
}
