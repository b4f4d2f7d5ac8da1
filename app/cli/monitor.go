package cli

import (
	"os"
	"path/filepath"
)

// monitorSlack is how many nanoseconds the monitor thread of Go's runtime may sleep longer than it asks for. The
// kernel's default is 50,000.
const monitorSlack = "200000"

// calmMonitor makes the monitor thread of Go's runtime wake less often. While anything runs, it wakes every 20 µs and
// the slack: ten times during a tool call, half of all switches of threads. It only looks for goroutines that have
// run for 10 ms and for system calls that keep others from running. Without the capability for it, calmMonitor does
// nothing.
func calmMonitor() {
	if path := monitorFile(); path != "" {
		_ = os.WriteFile(path, []byte(monitorSlack), 0) // it is only an improvement
	}
}

// monitorFile returns the file with the slack of the monitor (proc_pid_timerslack_ns(5)), or "". The monitor is the
// first thread that the runtime starts, and the kernel lists the threads in this order.
func monitorFile() string {
	directory, err := os.Open("/proc/self/task")
	if err != nil {
		return ""
	}
	defer directory.Close()
	threads, err := directory.Readdirnames(2)
	if err != nil || len(threads) < 2 {
		return ""
	}
	return filepath.Join("/proc", threads[1], "timerslack_ns")
}
