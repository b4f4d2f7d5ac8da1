package main

import (
	"os"
	"reflect"
	"testing"
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

func TestEventLinesAreRead(t *testing.T) {
	const line = "         airlock-12345   [001] ....1 26222.065199: decided: (0xb9f7a0)"
	got := eventLine.FindStringSubmatch(line)
	if want := []string{"26222", "065199", "decided"}; got == nil || !reflect.DeepEqual(got[1:], want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
