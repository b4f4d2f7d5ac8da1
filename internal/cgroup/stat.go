package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Stat reads what the group has consumed so far. After Remove it is zero.
func (g *Group) Stat() Stat {
	if g.version == 1 {
		return Stat{
			PeakMemory: g.number(Memory, "memory.max_usage_in_bytes"),
			CPU:        time.Duration(g.number(cpuacct, "cpuacct.usage")),
			OOMKills:   g.field(Memory, "memory.oom_control", "oom_kill"),
			TasksHit:   g.field(PIDs, "pids.events", "max"),
		}
	}
	return Stat{
		PeakMemory: g.number(Memory, "memory.peak"),
		CPU:        time.Duration(g.field(CPU, "cpu.stat", "usage_usec")) * time.Microsecond,
		OOMKills:   g.field(Memory, "memory.events", "oom_kill"),
		TasksHit:   g.field(PIDs, "pids.events", "max"),
	}
}

func (g *Group) read(c Controller, file string) string {
	dir, ok := g.dirs[c]
	if !ok {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return ""
	}
	return string(data)
}

// number reads a file that holds one number; 0 when it cannot.
func (g *Group) number(c Controller, file string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(g.read(c, file)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// field reads one line "key number" of a file; 0 when it cannot.
func (g *Group) field(c Controller, file, key string) int64 {
	for line := range strings.Lines(g.read(c, file)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != key {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}
