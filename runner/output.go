package runner

import (
	"bytes"
	"io"
	"sync"
)

// Output is what is kept of one stream of a guest program.
type Output struct {
	Head  []byte // the first bytes: up to the limit and a little more, so that a secret across the limit can still be found
	Total int64  // bytes that were written in all
	Tail  []byte // the last bytes, at most 64 KiB: whole lines where there are any
}

const (
	headSlack = 4 << 10
	tailLimit = 64 << 10
)

// collector drains one stream for as long as it lasts and keeps its two ends.
type collector struct {
	limit int64            // of Head
	count func(n int) bool // told of every read; false means: drain, but keep nothing more

	mu    sync.Mutex
	head  []byte
	tail  []byte // a sliding window that is cut when it reaches twice tailLimit
	total int64
	done  chan struct{}
}

func newCollector(limit int64, count func(n int) bool) *collector {
	return &collector{limit: limit + headSlack, count: count, done: make(chan struct{})}
}

// drain reads until the stream ends. A stream that breaks ends too: what has
// arrived by then is all there is.
func (c *collector) drain(r io.Reader) {
	defer close(c.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		if n > 0 && c.count(n) {
			c.keep(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (c *collector) keep(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(data))
	if room := c.limit - int64(len(c.head)); room > 0 {
		c.head = append(c.head, data[:min(room, int64(len(data)))]...)
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
