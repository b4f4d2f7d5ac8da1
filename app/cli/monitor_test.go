package cli

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Issue 32: the monitor of Go's runtime took a tenth of the processor time of a tool call.
func TestTheMonitorIsCalm(t *testing.T) {
	if err := os.WriteFile(monitorFile(), []byte("50000"), 0); errors.Is(err, os.ErrPermission) {
		t.Skip("the slack of another thread takes CAP_SYS_NICE")
	}
	calmMonitor()
	slack, err := os.ReadFile(monitorFile())
	if err != nil || strings.TrimSpace(string(slack)) != monitorSlack {
		t.Errorf("got %q, %v, want %s", slack, err, monitorSlack)
	}
	main, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil || strings.TrimSpace(string(main)) == monitorSlack {
		t.Errorf("the first thread: got %q, %v, want another slack", main, err)
	}
}
