package witness

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// file appends checkpoints to a file, which should lie on storage that the log's
// owner can append to and not rewrite.
type file struct{ path string }

// Submit appends the note, an empty line behind it, and syncs it.
func (f *file) Submit(_ context.Context, c Checkpoint) ([]byte, error) {
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		// One that may only be appended to cannot be read.
		out, err = os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("the audit witness: %w", err)
	}
	text := append(append([]byte(nil), c.Note...), '\n')
	if unfinishedLine(out) {
		text = append([]byte("\n"), text...)
	}
	_, err = out.Write(text)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return nil, fmt.Errorf("the audit witness: %w", err)
	}
	return nil, nil
}

// unfinishedLine reports whether an earlier write was interrupted.
func unfinishedLine(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err != nil || last[0] != '\n'
}
