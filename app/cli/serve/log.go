package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Limits of the log of a detached daemon.
const (
	maxServeLog  = 16 << 20 // bytes; then it is rotated
	keptServeLog = 4        // rotated files: serve.log.1 is the newest
)

// serveLog adds the time to the messages for people in the log of a detached daemon, and rotates
// the log. Lines of the logger have a time already. Each write must be one message. It is safe for
// concurrent use.
type serveLog struct {
	to   io.Writer
	most int64

	mu   sync.Mutex
	file *os.File // nil if to is not the log file
	path string
}

// newServeLog returns the writer for a detached daemon whose standard error is w. If w is not the
// log in the state directory, it is not rotated.
func newServeLog(w io.Writer) *serveLog {
	l := &serveLog{to: w, most: maxServeLog}
	home, err := store.Home(os.Getenv)
	file, ok := verb.Behind(w).(*os.File)
	if err != nil || !ok {
		return l
	}
	path := filepath.Join(home, store.ServeLog)
	is, err := file.Stat()
	named, namedErr := os.Lstat(path)
	if err == nil && namedErr == nil && os.SameFile(is, named) {
		l.file, l.path = file, path
	}
	return l
}

// Write writes the time and b.
func (l *serveLog) Write(b []byte) (int, error) {
	line := b
	if !bytes.HasPrefix(b, []byte("time=")) {
		line = append([]byte("time="+time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")+" "), b...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.rotateLocked(); err != nil { // the log continues in the same file
		fmt.Fprintf(l.to, "airlock: the log could not be rotated: %s\n", err)
		l.file = nil
	}
	if _, err := l.to.Write(line); err != nil {
		return 0, err
	}
	return len(b), nil
}

// rotateLocked copies a log that is too large to serve.log.1 and empties it. The file itself stays,
// because the runtime also writes to standard error.
func (l *serveLog) rotateLocked() error {
	if l.file == nil {
		return nil
	}
	info, err := l.file.Stat()
	if err != nil || info.Size() < l.most {
		return err
	}
	for n := keptServeLog - 1; n > 0; n-- {
		if err := os.Rename(l.rotated(n), l.rotated(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err = store.Write(l.rotated(1), 0o600, func(to *os.File) error {
		_, err := io.Copy(to, io.NewSectionReader(l.file, 0, info.Size()))
		return err
	})
	if err != nil {
		return err
	}
	return l.file.Truncate(0)
}

func (l *serveLog) rotated(n int) string { return fmt.Sprintf("%s.%d", l.path, n) }
