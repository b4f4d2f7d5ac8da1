package bounds

import (
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/runner"
)

// Cause says how a sandbox ended, as far as its control group and its driver know
// without asking gVisor; ok is false where they do not. The order matters: a
// limit explains a kill, and a kill explains whatever else is said of the end.
// Group and meter may be nil. forks says that the code wanted more processes than it may have.
func Cause(group *cgroup.Group, meter *Meter, forks, killed bool) (exit runner.Exit, ok bool) {
	var stat cgroup.Stat
	if group != nil {
		stat = group.Stat()
	}
	exit = runner.Exit{Signal: int(unix.SIGKILL)}
	switch {
	case stat.OOMKills > 0, meter != nil && meter.hit.Load():
		exit.Reason = runner.ReasonMemory
	case stat.TasksHit > 0, forks:
		exit.Reason = runner.ReasonProcesses
	case !killed:
		return runner.Exit{}, false
	}
	return exit, true
}

// Usage reads the counters of a sandbox's control group and meter. Either may be nil.
func Usage(group *cgroup.Group, meter *Meter) runner.Usage {
	var usage runner.Usage
	if group != nil {
		stat := group.Stat()
		usage = runner.Usage{PeakMemory: stat.PeakMemory, CPU: stat.CPU}
	}
	if meter != nil {
		usage.PeakMemory = meter.peak.Load()
	}
	return usage
}
