package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli/runs"
	"github.com/airlock-mcp/airlock/app/fastpath"
)

// The grammar parses every command line that the fast path accepts to the same result.
func TestTheFastPathReadsAsTheGrammarDoes(t *testing.T) {
	words := []string{"p.py", "p.js", "p", "-", "--", "", "-x", "--json", "--json=false", "--lang", "--lang=node",
		"--lang=ruby", "--lang=", "--language=py", "python", "--timeout=1s", "--timeout", "--timeout=-1s",
		"--timeout=0", "--timeout=5", "--timeout=1.5m", "1s", "--profile", "--profile=a", "--config", "--config=c.yaml",
		"--config=", "@p"}
	understood := 0
	var try func(line []string, more int)
	try = func(line []string, more int) {
		if command, ok := fastpath.Parse(line); ok {
			understood++
			parsed, ok := parseVerb(line)
			if !ok {
				t.Errorf("%q is understood, but is no command line", line)
				return
			}
			run, ok := parsed.Selected().Target.Addr().Interface().(*runs.Run)
			if !ok {
				t.Fatalf("%q: another verb", line)
			}
			got, want := command, fastpath.Command{File: run.File, Language: run.Language(), Config: run.Config,
				Profile: run.Profile, Timeout: run.Timeout}
			if plain := (runs.Run{Profiled: run.Profiled, Lang: run.Lang, Timeout: run.Timeout, JSON: run.JSON,
				File: run.File}); got != want || !reflect.DeepEqual(*run, plain) {
				t.Errorf("%q: got %+v, want %+v of %+v", line, got, want, *run)
			}
		}
		if more > 0 {
			for _, word := range words {
				try(append(line[:len(line):len(line)], word), more-1)
			}
		}
	}
	try([]string{"run"}, 3)
	if understood < 30 {
		t.Errorf("%d command lines were understood: the test checks next to nothing", understood)
	}
	for _, line := range []string{"", "version", "runs list", "mcp", "help run"} {
		if _, ok := fastpath.Parse(strings.Fields(line)); ok {
			t.Errorf("%q is understood", line)
		}
	}
}
