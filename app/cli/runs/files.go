package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/cli/verb"
)

// printFiles lists the files that a run has attached.
func printFiles(s *verb.Streams, runID string, files []attachment.File) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(
			s.Err, "airlock: the run has attached no file, or its files are no longer kept (attachments.keep)")
		return err
	}
	return verb.Paged(s, func(w io.Writer) error {
		var t verb.Table
		for _, f := range files {
			t.Add(verb.Text(verb.OneLine(f.Name, 100), verb.Plain), verb.Text(f.MIME, verb.Plain),
				verb.Text(fmt.Sprintf("%d bytes", f.Bytes), verb.Plain),
				verb.Text(verb.OneLine(f.Note, 100), verb.Dim))
		}
		if err := t.Write(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "to get one: airlock runs show %s --save NAME PATH\n", runID)
		return err
	})
}

// saveFile writes one file of a run to path: a new file, a directory for the new file, or "-" for
// stdout. It never replaces a file, because the content comes from a program.
func saveFile(s *verb.Streams, store *attachment.Store, runID, name, path string) error {
	missing := func(err error) error {
		return verb.WithHint(fmt.Errorf("the run %s has no file %q: %w", runID, name, err),
			"airlock runs show "+runID+" --files", verb.ExitFailed)
	}
	if store == nil {
		return missing(attachment.ErrNotFound)
	}
	file, content, err := store.Read(runID, name)
	if errors.Is(err, attachment.ErrNotFound) {
		return missing(attachment.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if path == "-" {
		if _, err := s.Out.Write(content); err != nil {
			return fmt.Errorf("printing the file: %w", err)
		}
		return nil
	}
	if info, err := os.Stat(path); path == "" || err == nil && info.IsDir() {
		path = filepath.Join(path, file.Name)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return verb.Usage(fmt.Sprintf("%q exists already", path),
			"airlock runs show "+runID+" --save NAME ANOTHER_PATH")
	}
	if err != nil {
		return fmt.Errorf("saving the file: %w", err)
	}
	_, err = out.Write(content)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("saving the file: %w", err)
	}
	_, err = fmt.Fprintf(s.Err, "airlock: %s (%s, %d bytes) is in %s\n", file.Name, file.MIME, file.Bytes, path)
	return err
}
