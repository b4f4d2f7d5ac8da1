package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// describeMachine describes the machine in one line.
func describeMachine() string {
	load, _ := os.ReadFile("/proc/loadavg") // empty if missing
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d processors, Linux %s, %s; load %s; of %s.", runtime.NumCPU(),
		strings.TrimSpace(string(release)), runtime.Version(),
		strings.Join(strings.Fields(string(load))[:3], " "), time.Now().UTC().Format(time.RFC3339))
}
