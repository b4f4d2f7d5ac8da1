package runner

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Output is what is kept of one stream of a guest program.
type Output struct {
	// the first bytes: up to the limit and a little more, so that a secret across the limit can still be found
	Head  []byte
	Total int64  // bytes that were written in all
	Tail  []byte // the last bytes, at most 64 KiB, starting at a line if one fits
}

const (
	headSlack = 4 << 10
	tailLimit = 64 << 10
	// readPause is how long a stream is left alone after little was read: a program that prints line by line is not
	// interrupted for each. The pipe holds what comes meanwhile; flush does not wait.
	readPause = time.Millisecond
	readSize  = 32 << 10 // of one read
)

// collector drains one stream for as long as it lasts and keeps its two ends.
type collector struct {
	limit int64            // of Head
	count func(n int) bool // called after every read; false means: drain, but keep nothing more

	mu     sync.Mutex
	last   *reading // of the stream, or of the last one if there were several
	buffer []byte   // of readSize, while a stream is read: a suspended sandbox has none
	head   []byte
	tail   []byte // a sliding window that is cut when it reaches twice tailLimit
	total  int64
	raw    syscall.RawConn // the stream, if it is a pipe
}

func newCollector(limit int64, count func(n int) bool) *collector {
	c := &collector{limit: limit + headSlack, count: count}
	c.next()
	return c
}

// restore begins with what another process has kept of streams that have ended.
func (c *collector) restore(kept Output) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.tail, c.total = kept.Head, kept.Tail, kept.Total
	close(c.last.begun)
	close(c.last.done)
}

// reading is the reading of one stream.
type reading struct {
	done  chan struct{} // closed when the stream has ended
	begun chan struct{} // closed when it is being read
}

// next prepares the collector for another stream, which continues the former one.
func (c *collector) next() *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = &reading{done: make(chan struct{}), begun: make(chan struct{})}
	c.raw = nil
	return c.last
}

// ended returns a channel that is closed when the last stream has ended.
func (c *collector) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.done
}

// drain reads until the stream ends. A stream that breaks ends too: what has
// arrived by then is all there is.
func (c *collector) drain(r io.Reader, of *reading) {
	defer close(of.done)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.buffer = nil
	}()
	begin := sync.OnceFunc(func() { close(of.begun) })
	defer begin()
	pipe, ok := r.(syscall.Conn)
	if !ok {
		begin()
		var err error
		for err == nil {
			_, err = c.read(r.Read)
		}
		return
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	c.mu.Lock()
	c.raw = raw
	c.mu.Unlock()
	begin()
	// Every read happens under the lock, so that flush can know that nothing
	// is between the pipe and what is kept.
	for err == nil {
		var n int
		waitErr := raw.Read(func(fd uintptr) bool {
			n, err = c.read(fdReader(fd))
			return !errors.Is(err, unix.EAGAIN)
		})
		if waitErr != nil {
			return
		}
		if n < readSize && err == nil {
			time.Sleep(readPause)
		}
	}
}

// flush reads what has been written so far, without waiting for more.
func (c *collector) flush() {
	c.mu.Lock()
	begun := c.last.begun
	c.mu.Unlock()
	<-begun
	c.mu.Lock()
	raw := c.raw
	c.mu.Unlock()
	if raw == nil {
		return
	}
	// An error means that the stream has ended, and all of it is here.
	_ = raw.Control(func(fd uintptr) {
		var err error
		for err == nil {
			_, err = c.read(fdReader(fd))
		}
	})
}

// fdReader reads from a descriptor as it is, without waiting.
func fdReader(fd uintptr) func([]byte) (int, error) {
	return func(b []byte) (int, error) {
		n, err := unix.Read(int(fd), b)
		if n == 0 && err == nil {
			err = io.EOF
		}
		return max(n, 0), err
	}
}

// read reads once, keeps what it got, and returns how much that is.
func (c *collector) read(from func([]byte) (int, error)) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buffer == nil {
		c.buffer = make([]byte, readSize)
	}
	n, err = from(c.buffer)
	if n > 0 && c.count(n) {
		c.keepLocked(c.buffer[:n])
	}
	if errors.Is(err, unix.EINTR) {
		return n, nil
	}
	return n, err
}

func (c *collector) keepLocked(data []byte) {
	c.total += int64(len(data))
	if left := c.limit - int64(len(c.head)); left > 0 {
		c.head = append(c.head, data[:min(left, int64(len(data)))]...)
	}
	c.tail = append(c.tail, data...)
	if len(c.tail) > 2*tailLimit {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-tailLimit:]...)
	}
}

// output returns copies of what was kept so far.
func (c *collector) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail[max(0, len(c.tail)-tailLimit):]
	if int64(len(tail)) < c.total {
		if cut := bytes.IndexByte(tail, '\n'); cut >= 0 {
			tail = tail[cut+1:]
		}
	}
	return Output{Head: bytes.Clone(c.head), Total: c.total, Tail: bytes.Clone(tail)}
}
