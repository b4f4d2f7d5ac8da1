// Package sessionfiles keeps the files that the runs of one session share in
// /workspace/session: they are copied into each sandbox and out of it again, as
// paths and bytes, never as files of the host. They are bounded, and encrypted on
// disk with a key that only this process has; they go with their session, and
// those of a process that was killed go when the next one starts.
package sessionfiles

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits bound the files of one session.
type Limits struct {
	Bytes int64 // of all files together; 0 keeps none
	Files int
}

// Piece is a part of a file on its way in or out. The pieces of one file follow
// each other; the first one replaces what was there.
type Piece struct {
	Path   string `json:"path"` // relative, with slashes
	Data   []byte `json:"data"`
	Append bool   `json:"append,omitempty"`
}

// MaxPiece is the most bytes of one piece. One fits a frame of the socket, encoded.
const MaxPiece = 8 << 20

// A LimitError is the reason why the files of a run were not kept.
type LimitError struct{ Problem string }

// Error returns the problem.
func (e *LimitError) Error() string { return e.Problem }

// The most that a path may have.
const (
	maxPath      = 1024 // bytes
	maxComponent = 255  // bytes
	maxDepth     = 32
)

var errPath = errors.New("a path is not relative, or not one that files can have everywhere")

// checkPath refuses a path that leaves its directory, or that not every file
// system can hold. The host itself makes no file of that name.
func checkPath(name string) error {
	if len(name) > maxPath || name != path.Clean(name) || name == "." || !utf8.ValidString(name) ||
		strings.ContainsRune(name, 0) {
		return errPath
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return fmt.Errorf("%w: it has %d levels", errPath, len(parts))
	}
	for _, part := range parts {
		if part == "" || part == ".." || len(part) > maxComponent {
			return errPath
		}
	}
	return nil
}
