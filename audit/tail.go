package audit

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// followInterval is how often a followed log is looked at.
const followInterval = 200 * time.Millisecond

// Tail calls visit for the last n records, oldest first. If follow is set, it then calls visit
// for each new record until ctx is done, and returns nil.
func Tail(ctx context.Context, dir string, n int, follow bool, visit func(Record) error) error {
	list, err := segments(dir)
	if err != nil {
		return err
	}
	var lines [][]byte // the newest n, oldest first
	at := cursor{dir: dir}
	for i := len(list) - 1; i >= 0; i-- {
		older, end, err := lastLines(list[i].path, n-len(lines))
		if err != nil {
			return err
		}
		if i == len(list)-1 {
			at.first, at.offset = list[i].first, end
		}
		lines = append(older, lines...)
		if len(lines) >= n {
			break
		}
	}
	for _, line := range lines {
		r, err := open(line)
		if err != nil {
			return err
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return at.follow(ctx, visit)
}

// TailPeriod is Tail for all records of a period.
func TailPeriod(ctx context.Context, dir string, p Period, follow bool, visit func(Record) error) error {
	first, err := FirstSince(dir, p)
	if err != nil {
		return err
	}
	at := cursor{dir: dir, first: first}
	within := func(r Record) error {
		if !p.Has(r) {
			return nil
		}
		return visit(r)
	}
	if !follow {
		return at.advance(within)
	}
	return at.follow(ctx, within)
}

// lastLines returns the last n lines of a segment and the end of the last one.
func lastLines(path string, n int) (lines [][]byte, end int64, err error) {
	err = eachLine(path, 0, func(_ int, line []byte) error {
		end += int64(len(line)) + 1
		if n <= 0 {
			return nil
		}
		if len(lines) == 2*n {
			lines = slices.Delete(lines, 0, n)
		}
		lines = append(lines, slices.Clone(line))
		return nil
	})
	return lines[max(0, len(lines)-max(0, n)):], end, err
}

// Follower reads a log from its beginning and, with each call, the new records. It is not safe
// for concurrent use.
type Follower struct{ at cursor }

// NewFollower returns a follower of the records that have the word in their line.
func NewFollower(dir, word string) *Follower { return &Follower{cursor{dir: dir, word: word}} }

// Advance calls visit for each record that is new.
func (f *Follower) Advance(visit func(Record) error) error { return f.at.advance(visit) }

// cursor is a place in a log up to which it has been read.
type cursor struct {
	dir    string
	word   string // that a record has in its line; empty for all records
	first  uint64 // the segment; 0 before there is one
	offset int64
}

func (c *cursor) follow(ctx context.Context, visit func(Record) error) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		if err := c.advance(visit); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// advance visits what is new.
func (c *cursor) advance(visit func(Record) error) error {
	list, err := segments(c.dir)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.first < c.first {
			continue
		}
		if s.first > c.first {
			c.first, c.offset = s.first, 0
		}
		err := eachLine(s.path, c.offset, func(_ int, line []byte) error {
			c.offset += int64(len(line)) + 1
			if !bytes.Contains(line, []byte(c.word)) {
				return nil
			}
			r, err := open(line)
			if err != nil {
				return err
			}
			return visit(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
