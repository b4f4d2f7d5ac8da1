package bounds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/runner"
)

// Meter bounds the memory of a sandbox that has no control group. It samples the size
// often enough that memory growing by fastestGrowth cannot exceed the limit between
// two samples.
type Meter struct {
	pid   int
	limit int64
	peak  atomic.Int64
	hit   atomic.Bool
}

const (
	fastestGrowth = 2 << 30 // bytes a second, more than zeroing pages allows
	shortestPause = 2 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// Meter returns a meter for the sandbox whose gVisor kernel has the process ID pid, or
// nil if a control group bounds its memory.
func (h *Host) Meter(pid int, l runner.Limits) *Meter {
	if h.tree != nil && h.tree.Has(cgroup.Memory) {
		return nil
	}
	return &Meter{pid: pid, limit: l.Memory}
}

// Await returns true as soon as the sandbox takes more memory than it may, and
// false when ctx ends or the sandbox has ended.
func (m *Meter) Await(ctx context.Context) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		bytes, err := memoryOf(m.pid)
		if err != nil {
			return false
		}
		m.saw(bytes)
		if m.hit.Load() {
			return true
		}
		timer.Reset(pause(m.limit - bytes))
	}
}

// measure reads what the sandbox takes, and returns the most that it took so far.
func (m *Meter) measure() int64 {
	// An error means that the sandbox has ended.
	if bytes, err := memoryOf(m.pid); err == nil {
		m.saw(bytes)
	}
	return m.peak.Load()
}

// saw notes that the sandbox takes so many bytes.
func (m *Meter) saw(bytes int64) {
	for {
		peak := m.peak.Load()
		if bytes <= peak || m.peak.CompareAndSwap(peak, bytes) {
			break
		}
	}
	if bytes > m.limit {
		m.hit.Store(true)
	}
}

// pause is how long memory with that much left can be left alone.
func pause(left int64) time.Duration {
	return min(max(time.Duration(float64(left)/fastestGrowth*float64(time.Second)), shortestPause), longestPause)
}

// memoryOf adds up what gVisor's kernel holds in memory: its own heap, and the
// memory files in which all memory of the code and all of its files lie. What
// the stub processes have mapped are pages of these files.
func memoryOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	bytes := anonymous(string(status))
	directory := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0, err
	}
	seen := map[uint64]bool{}
	for _, entry := range entries {
		path := filepath.Join(directory, entry.Name())
		if name, err := os.Readlink(path); err != nil || !strings.HasPrefix(name, "/memfd:") {
			continue // closed meanwhile, or another kind of file
		}
		var stat syscall.Stat_t
		if syscall.Stat(path, &stat) != nil || seen[stat.Ino] {
			continue
		}
		seen[stat.Ino] = true
		bytes += stat.Blocks * 512
	}
	return bytes, nil
}

// anonymous returns the size of a process's anonymous memory (proc(5),
// /proc/pid/status, RssAnon).
func anonymous(status string) int64 {
	_, rest, found := strings.Cut(status, "RssAnon:")
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
