package audit

import (
	"os"
	"time"
)

// SettleAtOnce has fingerprints count at once, and returns what undoes that.
func SettleAtOnce() (undo func()) {
	before := settledAfter
	settledAfter = -time.Hour
	return func() { settledAfter = before }
}

// CheckpointsInMemory returns how many kept checkpoints the submitters of a closed log hold.
func (l *Log) CheckpointsInMemory() (n int) {
	for _, c := range l.witnesses {
		n += len(c.read.list)
	}
	return n
}

// HoldDisk keeps what was written from becoming durable until release is called.
func (l *Log) HoldDisk() (release func()) {
	disk := &l.commits.appender.disk
	disk.syncing.Lock()
	return disk.syncing.Unlock
}

// BreakDisk has the next sync fail. It must be held.
func (l *Log) BreakDisk() {
	disk := &l.commits.appender.disk
	closed, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	closed.Close()
	disk.mu.Lock()
	defer disk.mu.Unlock()
	disk.file = closed
}
