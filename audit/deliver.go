package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/airlock-mcp/airlock/audit/witness"
	files "github.com/airlock-mcp/airlock/internal/store"
)

// Limits of deliveries.
const (
	deliveryBatch = 500
	retryDelivery = 2 * time.Second
)

// Delivery exports records to a sink.
type Delivery struct {
	Format Format
	ExportOptions
	// Cursor is the file that has the last delivered record, so that another delivery continues
	// behind it. If it is empty, a delivery begins with the options.
	Cursor string
	Follow bool // deliver new records until the context is done, and retry what fails
	// Failed is called with each error that does not end the delivery. It may be nil.
	Failed func(error)
}

// Deliver sends the selected records. After an interruption, records of the last batch may be sent
// again, and none is left out. The record at the cursor must still be in the log, unless retention
// has removed it.
func (d Delivery) Deliver(ctx context.Context, dir string, to witness.Sink) error {
	if _, ok := encoders()[d.Format]; !ok {
		return fmt.Errorf("exporting the audit log: there is no format %q", d.Format)
	}
	after, err := d.readCursor()
	if err != nil {
		return err
	}
	first, err := d.first(dir)
	if err != nil {
		return err
	}
	r := &delivering{Delivery: d, to: to, after: after}
	at := cursor{dir: dir, first: max(first, after.seq)}
	if list, err := segments(dir); err != nil {
		return err
	} else if n := fileOf(list, at.first); n >= 0 {
		at.first = list[n].first
		if after.seq > 0 && at.first > after.seq+1 && d.Failed != nil {
			d.Failed(fmt.Errorf("records %d to %d were removed before they were exported", after.seq+1, at.first-1))
		}
	}
	for {
		err := at.advance(func(record Record) error { return r.take(ctx, record) })
		if err == nil {
			err = r.flush(ctx)
		}
		if d.Follow && ctx.Err() != nil {
			return nil
		}
		if err != nil || !d.Follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
	}
}

// fileOf returns the index of the file that has the numbered record, or -1.
func fileOf(list []segment, seq uint64) int {
	n := -1
	for i, s := range list {
		if s.first <= seq || i == 0 {
			n = i
		}
	}
	return n
}

type delivering struct {
	Delivery
	to    witness.Sink
	after mark // the last delivered record
	last  mark // the last record of lines
	lines [][]byte
}

// take adds a record to the batch.
func (r *delivering) take(ctx context.Context, record Record) error {
	if record.Seq <= r.after.seq {
		if record.Seq == r.after.seq && record.Hash != r.after.hash {
			return fmt.Errorf("the cursor %q is of another log: its record %d has another hash", r.Cursor, record.Seq)
		}
		return nil
	}
	text, err := r.line(record, r.Format)
	if err != nil {
		return err
	}
	r.last = mark{record.Seq, record.Hash}
	if text != nil {
		r.lines = append(r.lines, bytes.TrimSuffix(text, []byte("\n")))
	}
	if len(r.lines) < deliveryBatch {
		return nil
	}
	return r.flush(ctx)
}

// flush sends the batch and then moves the cursor.
func (r *delivering) flush(ctx context.Context) error {
	for len(r.lines) > 0 {
		err := r.to.Send(ctx, r.lines)
		if err == nil {
			r.lines = nil
			break
		}
		if !r.Follow || ctx.Err() != nil {
			return fmt.Errorf("exporting the audit log: %w", err)
		}
		if r.Failed != nil {
			r.Failed(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryDelivery):
		}
	}
	if r.Cursor == "" || r.last == r.after || r.last == (mark{}) {
		return nil
	}
	r.after = r.last
	return files.WriteFile(r.Cursor, fmt.Appendf(nil, "%d %s\n", r.last.seq, r.last.hash), 0o600)
}

func (d Delivery) readCursor() (m mark, err error) {
	if d.Cursor == "" {
		return m, nil
	}
	text, err := files.ReadFile(d.Cursor)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		if _, err = fmt.Sscanf(string(text), "%d %s\n", &m.seq, &m.hash); err != nil {
			err = fmt.Errorf("%q is not a cursor of an export", d.Cursor)
		}
	}
	return m, err
}
