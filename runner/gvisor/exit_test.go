package gvisor_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
)

func TestExit(t *testing.T) {
	reported := func(status unix.WaitStatus) func() (unix.WaitStatus, bool) {
		return func() (unix.WaitStatus, bool) { return status, true }
	}
	silent := func() (unix.WaitStatus, bool) { return 0, false }
	tests := []struct {
		name  string
		code  int
		guest func() (unix.WaitStatus, bool)
		want  runner.Exit
	}{
		{"success", 0, silent, runner.Exit{}},
		{"a failure", 3, silent, runner.Exit{Code: 3}},
		{"128 is no signal", 128, silent, runner.Exit{Code: 128}},
		{"nothing is reported", 137, silent, runner.Exit{Code: 137, Signal: 9}},
		{"a signal is reported", 137, reported(9), runner.Exit{Code: 137, Signal: 9}},
		{"an exit is reported", 137, reported(137 << 8), runner.Exit{Code: 137}},
		{"another exit is reported", 137, reported(0), runner.Exit{Code: 137, Signal: 9}},
		{"no signal has that number", 200, silent, runner.Exit{Code: 200}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := gvisor.Exit(test.code, test.guest); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
