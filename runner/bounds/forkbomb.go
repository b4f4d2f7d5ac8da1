package bounds

import "sync"

// forkBomb distinguishes a fork bomb from one process that exhausts its memory. Each
// process and thread takes some megabytes, so a fork bomb can reach the memory limit
// before the process limit.
type forkBomb struct {
	mu     sync.Mutex
	tasks  int   // how many processes and threads there are
	most   int   // how many there were when the newest was started
	before int64 // bytes that were taken when few of them had been started
	last   int64 // bytes that were taken when the newest was started
}

const (
	few   = 8        // what any program may start
	many  = 24       // a number that is high enough to be a cause
	share = 20 << 20 // bytes that a process may take and be one of a fork bomb: those of real ones take 4 to 13 MiB
)

// counted notes how many processes and threads there are. memory returns the bytes
// that the sandbox took at most so far, and whether the limit was met already.
func (b *forkBomb) counted(tasks int, memory func() (bytes int64, full bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.tasks
	b.tasks = tasks
	switch {
	case tasks == few-1 && before == few:
		// At the limit the host kills them: they did not exit by themselves.
		if _, full := memory(); !full {
			b.most, b.before, b.last = 0, 0, 0
		}
	case tasks < few || tasks < before:
	default:
		b.last, _ = memory()
		b.most = tasks
		if tasks == few {
			b.before = b.last
		}
	}
}

// filled reports whether it were the processes and threads that filled the memory
// up to its limit: there were many, none of them large, and most of what was taken
// since there were few was taken while they were being started.
func (b *forkBomb) filled(limit int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	grown := b.last - b.before
	return b.most >= many && grown > limit/4 && grown > limit-b.last && grown < share*int64(b.most-few)
}
