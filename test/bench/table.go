package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// times are measurements of one thing.
type times []time.Duration

// at returns the value below which the given share of the measurements lies.
func (t times) at(share float64) time.Duration {
	sorted := slices.Clone(t)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }

func printMachine(at place) {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	gvisor, _ := exec.Command(at.bin("runsc"), "--version").Output() // shown empty where it does not say
	fmt.Printf("%d cores, Linux %s, %s, %s; load %s\n\n", runtime.NumCPU(), strings.TrimSpace(string(kernel)),
		runtime.Version(), strings.SplitN(string(gvisor), "\n", 2)[0], strings.TrimSpace(string(load)))
}

func printHead() {
	fmt.Printf("%-58s %9s %9s %9s  %-10s %s\n", "what (milliseconds)", "p50", "p95", "p99", "target", "ratio at p50")
}

// row prints one line of the table.
func row(name string, t times, target, ratio string) {
	fmt.Printf("%-58s %9s %9s %9s  %-10s %s\n", name, milliseconds(t.at(.5)), milliseconds(t.at(.95)), milliseconds(t.at(.99)), target, ratio)
}

// against says how long a takes beside b.
func against(a, b times, name string) string {
	return fmt.Sprintf("%.2f × %s", float64(a.at(.5))/float64(b.at(.5)), name)
}
