package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

func TestFunctionsBeginWhereTheRuntimeSays(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	table, err := readFunctions(program)
	if err != nil {
		t.Fatal(err)
	}
	const name = "github.com/airlock-mcp/airlock/test/bench.echo"
	want := uint64(reflect.ValueOf(echo).Pointer())
	got, err := table.offset(name)
	if err != nil {
		t.Fatal(err)
	}
	if got+table.text.Vaddr-table.text.Off != want {
		t.Errorf("%s lies at 0x%x of the file, which is no place of 0x%x", name, got, want)
	}
	if _, err := table.offset("main.isNotThere"); err == nil {
		t.Error("a function that is not there was found")
	}
}

// Issue 32: a function of a probe was renamed, so that the measurement of the parts of a call failed.
func TestProbesAreInAirlock(t *testing.T) {
	airlock := filepath.Join(t.TempDir(), "airlock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", airlock, "./cmd/airlock")
	build.Dir = testenv.RepoRoot(t)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building airlock: %v\n%s", err, output)
	}
	table, err := readFunctions(airlock)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range traceProbes(airlock, "a server") {
		if p.program != airlock {
			continue
		}
		if _, err := table.offset(p.function); err != nil {
			t.Errorf("the probe of %q: %v", p.name, err)
		}
	}
}

func TestEventLinesAreRead(t *testing.T) {
	const line = "         airlock-12345   [001] ....1 26222.065199: decided: (0xb9f7a0)"
	got := eventLine.FindStringSubmatch(line)
	if want := []string{"26222", "065199", "decided"}; got == nil || !reflect.DeepEqual(got[1:], want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
