package upstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/store"
)

// startFailure distinguishes a missing command from one that cannot run.
func startFailure(c Config, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		problem := fmt.Sprintf("the command %s was not found", catalog.Quote(withoutPaths(c.Command)))
		if c.Dir != "" {
			if _, statErr := os.Stat(c.Dir); statErr != nil {
				problem = fmt.Sprintf("its working directory %s does not exist", catalog.Quote(withoutPaths(c.Dir)))
				return &StartError{ServerID: c.ID, Reason: ErrNoDirectory, Problem: problem, cause: err}
			}
		}
		if program := interpreter(c); program != "" {
			problem = fmt.Sprintf("the command %s cannot run: its first line names %s, which was not found",
				catalog.Quote(withoutPaths(c.Command)), catalog.Quote(withoutPaths(program)))
			return &StartError{ServerID: c.ID, Reason: ErrNotStarted, Problem: problem, cause: err}
		}
		return &StartError{ServerID: c.ID, Reason: ErrCommandNotFound, Problem: problem, cause: err}
	}
	if errors.Is(err, ErrClosed) {
		return err
	}
	var errno syscall.Errno
	reason := "not allowed"
	switch info, statErr := os.Stat(c.program()); {
	case statErr == nil && info.IsDir():
		reason = "it is a directory"
	case statErr == nil && info.Mode().Perm()&0o111 == 0:
		reason = "it is not executable (chmod +x makes it so)"
	case errors.As(err, &errno):
		reason = errno.Error()
	}
	problem := fmt.Sprintf("the command %s could not be started: %s", catalog.Quote(withoutPaths(c.Command)), reason)
	return &StartError{ServerID: c.ID, Reason: ErrNotStarted, Problem: problem, cause: err}
}

// program returns the path of the command, or "" if it is searched in PATH.
func (c Config) program() string {
	if !strings.Contains(c.Command, "/") {
		return ""
	}
	if filepath.IsAbs(c.Command) {
		return c.Command
	}
	return filepath.Join(c.Dir, c.Command)
}

// interpreter returns the missing interpreter in the first line of a script, or "" if the
// command is not such a script.
func interpreter(c Config) string {
	file, err := store.Open(c.program())
	if err != nil {
		return ""
	}
	defer file.Close()
	first := make([]byte, 256)
	n, _ := io.ReadFull(file, first) // a short script is read to its end
	line, _, _ := strings.Cut(string(first[:n]), "\n")
	program, isScript := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(program); isScript && len(fields) > 0 {
		return fields[0]
	}
	return ""
}
