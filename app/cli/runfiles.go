package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/app/attachment"
)

// printFiles lists the files that a run has attached.
func printFiles(s *streams, runID string, files []attachment.File) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(s.err, "airlock: the run has attached no file, or its files are no longer kept (attachments.keep)")
		return err
	}
	return paged(s, func(w io.Writer) error {
		var t table
		for _, f := range files {
			t.add(cell{oneLine(f.Name, 100), plain}, cell{f.MIME, plain}, cell{fmt.Sprintf("%d bytes", f.Bytes), plain}, cell{oneLine(f.Note, 100), dim})
		}
		if err := t.write(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "to get one: airlock runs show %s --save NAME PATH\n", runID)
		return err
	})
}

// saveFile writes one file of a run to path: a new file, a directory for the new file, or "-" for
// stdout. It never replaces a file, because the content comes from a program.
func saveFile(s *streams, store *attachment.Store, runID, name, path string) error {
	missing := func(err error) error {
		return &hinted{fmt.Errorf("the run %s has no file %q: %w", runID, name, err), "airlock runs show " + runID + " --files", ExitFailed}
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
		if _, err := s.out.Write(content); err != nil {
			return fmt.Errorf("printing the file: %w", err)
		}
		return nil
	}
	if info, err := os.Stat(path); path == "" || err == nil && info.IsDir() {
		path = filepath.Join(path, file.Name)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &usageError{fmt.Sprintf("%q exists already", path), "airlock runs show " + runID + " --save NAME ANOTHER_PATH"}
	}
	if err != nil {
		return fmt.Errorf("saving the file: %w", err)
	}
	_, err = out.Write(content)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("saving the file: %w", err)
	}
	_, err = fmt.Fprintf(s.err, "airlock: %s (%s, %d bytes) is in %s\n", file.Name, file.MIME, file.Bytes, path)
	return err
}
