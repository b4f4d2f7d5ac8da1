package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
)

// describeMachine describes the machine and the programs in one line. Unknown parts are
// empty.
func describeMachine(b *bench) string {
	cgroups := "cgroup v1"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		cgroups = "cgroup v2"
	}
	return fmt.Sprintf("%d cores (%s), %s of memory, Linux %s, %s; %s, gVisor %s on systrap, %s; load before: %s.",
		runtime.NumCPU(), found("/proc/cpuinfo", `model name\s*: (.*)`), memory(),
		found("/proc/sys/kernel/osrelease", `(\S+)`), cgroups,
		runtime.Version(), said(`runsc version (\S+)`, b.bin("runsc"), "--version"),
		said(`(.+)`, b.workerdProgram(), "--version"), load())
}

func load() string { return found("/proc/loadavg", `(\S+ \S+ \S+)`) }

func memory() string {
	var kilobytes int
	if _, err := fmt.Sscan(found("/proc/meminfo", `MemTotal:\s*(\d+)`), &kilobytes); err != nil {
		return "?"
	}
	return fmt.Sprintf("%d GiB", (kilobytes+1<<19)>>20)
}

// found returns what the pattern's group matches in a file.
func found(path, pattern string) string {
	text, _ := os.ReadFile(path) // empty if it cannot be read
	return first(pattern, text)
}

// said runs a program and returns the match of the pattern's group in its output.
func said(pattern, program string, args ...string) string {
	text, _ := exec.Command(program, args...).Output() // empty on failure
	return first(pattern, text)
}

func first(pattern string, text []byte) string {
	if match := regexp.MustCompile(pattern).FindSubmatch(text); match != nil {
		return strings.TrimSpace(string(match[1]))
	}
	return ""
}
