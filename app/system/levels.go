package system

import (
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// watchLevels registers the metrics of current load, until the system is closed.
func (s *System) watchLevels() error {
	stop, err := telemetry.Watch(
		telemetry.Level{Name: "airlock.sandbox.ready", Unit: "{sandbox}", Description: "Sandboxes that wait for work.",
			Read: func() int64 { return int64(s.sandboxes.Load().Ready) }},
		telemetry.Level{Name: "airlock.sandbox.in_use", Unit: "{sandbox}", Description: "Sandboxes that run code.",
			Read: func() int64 { return int64(s.sandboxes.Load().InUse) }},
		telemetry.Level{Name: "airlock.queue.waiting", Unit: "{run}", Description: "Runs that wait for a sandbox.",
			Read: func() int64 { return int64(s.sandboxes.Load().Waiting) }},
		telemetry.Level{Name: "airlock.approval.open", Unit: "{question}",
			Description: "Questions that wait for an answer.",
			Read:        func() int64 { return int64(s.desk.Open()) }},
		telemetry.Level{Name: "airlock.disk.free", Unit: "By", Description: "Free bytes for the state directory.",
			Read: func() int64 { return freeBytes(s.directories.Home) }},
	)
	if err != nil {
		return err
	}
	s.undo.Add(stop)
	return nil
}

// freeBytes returns how many bytes can be written to the file system of a directory, or 0 if that is
// unknown.
func freeBytes(dir string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return 0
	}
	return int64(stat.Bavail) * stat.Bsize
}
