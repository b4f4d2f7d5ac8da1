package bounds

import "sync"

// crowd tells a program that fills its memory from one whose processes and threads
// do, as those of a fork bomb: each takes some megabytes, so memory may end before
// their number does.
type crowd struct {
	mu     sync.Mutex
	tasks  int   // how many processes and threads there are
	most   int   // how many there were when the newest was started
	before int64 // bytes that were taken when few of them had been started
	last   int64 // bytes that were taken when the newest was started
}

const (
	few   = 8        // what any program may start
	many  = 24       // what is worth naming as a cause
	share = 20 << 20 // bytes that a process may take and be one of a crowd: those of a fork bomb take 4 to 13 MiB
)

// counted notes how many processes and threads there are. memory returns the bytes
// that the sandbox took at most so far, and whether the limit was met already.
func (c *crowd) counted(tasks int, memory func() (bytes int64, full bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.tasks
	c.tasks = tasks
	switch {
	case tasks == few-1 && before == few:
		// At the limit the host kills them, which is no end of their own.
		if _, full := memory(); !full {
			c.most, c.before, c.last = 0, 0, 0
		}
	case tasks < few || tasks < before:
	default:
		c.last, _ = memory()
		c.most = tasks
		if tasks == few {
			c.before = c.last
		}
	}
}

// filled reports whether it were the processes and threads that filled the memory
// up to its limit: there were many, none of them large, and most of what was taken
// since there were few was taken while they were being started.
func (c *crowd) filled(limit int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	grown := c.last - c.before
	return c.most >= many && grown > limit/4 && grown > limit-c.last && grown < share*int64(c.most-few)
}
