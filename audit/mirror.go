package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// pieceSize is the maximum number of bytes of a piece.
const pieceSize = 8 << 20

// Piece is a piece of a log, for a copy of its records on another machine.
type Piece struct {
	Origin   string   `json:"origin"`             // names the log in its checkpoints
	Files    []uint64 `json:"files"`              // the numbers of the first records of its files, oldest first
	Removals []byte   `json:"removals,omitempty"` // the signed summaries of removed records
	// Data are bytes of one file.
	Data []byte `json:"data,omitempty"`
}

// Last reports whether a piece reaches the end of its file. Others have 8 MiB.
func (p Piece) Last() bool { return len(p.Data) < pieceSize }

// ReadPiece reads bytes of the file whose first record has the number, from an offset on. If first is 0, it reads the
// list of files and the summaries instead.
func ReadPiece(dir string, first uint64, offset int64) (Piece, error) {
	var p Piece
	var err error
	if p.Origin, err = Origin(dir); err != nil {
		return p, err
	}
	if first == 0 {
		list, err := segments(dir)
		if err != nil {
			return p, err
		}
		for _, s := range list {
			p.Files = append(p.Files, s.first)
		}
		if p.Removals, err = readPlain(filepath.Join(dir, removalsFile)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return p, err
	}
	f, err := openPlain(segmentPath(dir, first), os.O_RDONLY)
	if err != nil {
		return p, fmt.Errorf("reading the audit log: %w", err)
	}
	p.Data, err = io.ReadAll(io.NewSectionReader(f, offset, pieceSize))
	return p, errors.Join(err, f.Close())
}

// ErrAnotherLog is returned by Mirror if the log has another origin.
var ErrAnotherLog = errors.New("the log is another one now")

// Origin returns the name of the log in a directory, as its checkpoints have it, or "" if it has none.
func Origin(dir string) (string, error) {
	head, err := readPlain(filepath.Join(dir, headFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the audit log: %w", err)
	}
	origin, _, _ := bytes.Cut(head, []byte("\n"))
	return string(origin), nil
}

// Mirror copies the records of a log with an origin into an empty directory. read is called like ReadPiece. The copy
// is verified with VerifyOptions.Copy.
func Mirror(dir, origin string, read func(first uint64, offset int64) (Piece, error)) error {
	list, err := read(0, 0)
	if err != nil {
		return err
	}
	if list.Origin != origin {
		return fmt.Errorf("copying the audit log: %w", ErrAnotherLog)
	}
	if len(list.Removals) > 0 {
		if err := os.WriteFile(filepath.Join(dir, removalsFile), list.Removals, 0o600); err != nil {
			return err
		}
	}
	for _, first := range list.Files {
		if err := mirrorFile(dir, origin, first, read); err != nil {
			return fmt.Errorf("copying the audit log: %w", err)
		}
	}
	return nil
}

func mirrorFile(dir, origin string, first uint64, read func(uint64, int64) (Piece, error)) (err error) {
	f, err := os.OpenFile(segmentPath(dir, first), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for offset := int64(0); ; {
		p, err := read(first, offset)
		switch {
		case err != nil:
			return err
		case p.Origin != origin:
			return ErrAnotherLog
		}
		if _, err := f.Write(p.Data); err != nil {
			return err
		}
		if p.Last() {
			return nil
		}
		offset += int64(len(p.Data))
	}
}
