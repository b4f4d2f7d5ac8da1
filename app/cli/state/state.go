// Package state has the verbs that back up, verify and restore the state directory.
package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/app/backup"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Verbs are the verbs of airlock state.
type Verbs struct {
	Backup  stateBackupVerb  `cmd:"" help:"Write the whole state, its keys included, to one file; Airlock may run meanwhile."`
	Verify  stateVerifyVerb  `cmd:"" help:"Check that a backup is complete and unchanged, and the audit log in it sound."`
	Rotate  stateRotateVerb  `cmd:"" help:"Make new keys for stored data; what was stored before stays readable."`
	Restore stateRestoreVerb `cmd:"" help:"Restore a backup to an empty state directory."`
	Import  stateImportVerb  `cmd:"" help:"Move the tokens, agents and budgets of this machine into the database of its cluster."`
	Export  stateExportVerb  `cmd:"" help:"Copy the tokens, agents and budgets of the cluster to this machine."`
}

// places returns the directories that are backed up.
func places(f verb.AuditFlags) (backup.Places, error) {
	c, err := f.LoadPlaces() // a backup is of the places that are configured, or not made
	if err != nil {
		return backup.Places{}, err
	}
	directories, err := setup.FindDirectories(c)
	return backup.Places{Home: directories.Home, Audit: directories.Audit, Keys: directories.Keys}, err
}

type stateBackupVerb struct {
	verb.AuditFlags
	File string `arg:"" help:"The new file; - is stdout."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run writes a backup. The file appears when it is complete.
func (v *stateBackupVerb) Run(ctx context.Context, s *verb.Streams) error {
	from, err := places(v.AuditFlags)
	if err != nil {
		return err
	}
	if verb.IsMissing(from.Home) {
		return verb.WithHint(fmt.Errorf("there is no state in %q", from.Home),
			"set AIRLOCK_HOME to the state directory", verb.ExitFailed)
	}
	var m *backup.Manifest
	write := func(w io.Writer) (err error) {
		m, err = backup.Write(ctx, w, from, verb.Version)
		return err
	}
	if v.File == "-" {
		if verb.IsTerminal(s.Out) {
			return verb.Usage("a backup has all keys and is not written to a terminal", "airlock state backup FILE")
		}
		return write(s.Out)
	}
	err = store.Create(v.File, 0o600, func(file *os.File) error { return write(file) })
	switch {
	case errors.Is(err, fs.ErrExist):
		return verb.Usage(fmt.Sprintf("%q exists already", v.File), "airlock state backup takes the name of a new file")
	case errors.Is(err, store.ErrLocked):
		return verb.WithHint(err, "wait for it to end", verb.ExitFailed)
	case err != nil:
		return err
	}
	if c, err := v.LoadPlaces(); err == nil && c.Cluster.Database != "" {
		fmt.Fprintln(s.Err, "airlock: the state that the cluster shares is in PostgreSQL, not in this backup\nhint: "+
			"back it up with pg_dump, too, and keep a copy of cluster.key")
	}
	return writeManifest(s, v.JSON, "backed up", m, nil)
}

// writeManifest prints what a backup has.
func writeManifest(s *verb.Streams, asJSON bool, done string, m *backup.Manifest, log *audit.Report) error {
	if asJSON {
		return verb.PrintLine(s.Out, struct {
			Created string        `json:"created"`
			Version string        `json:"version"`
			Home    string        `json:"home"`
			Files   int           `json:"files"`
			Bytes   int64         `json:"bytes"`
			Log     *audit.Report `json:"log,omitempty"`
		}{m.Created, m.Version, m.Home, len(m.Files), m.Size(), log})
	}
	_, err := fmt.Fprintf(s.Out, "%s: %d files, %d bytes, of %s, made %s by Airlock %s\n", done, len(m.Files), m.Size(),
		verb.Clean(m.Home), verb.Clean(m.Created), verb.Clean(m.Version))
	if err == nil && log != nil && log.Records > 0 {
		err = audit.WriteReport(s.Out, *log)
	}
	return err
}

type stateVerifyVerb struct {
	File string `arg:"" help:"The backup; - is stdin."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run unpacks a backup below the directory for temporary files and checks all of it.
func (v *stateVerifyVerb) Run(ctx context.Context, s *verb.Streams) error {
	return readBackup(s, v.File, func(r io.Reader) error {
		m, report, err := backup.Verify(ctx, r, os.TempDir())
		if err != nil {
			return err
		}
		return writeManifest(s, v.JSON, "the backup is sound", m, &report)
	})
}

// readBackup opens a backup and calls do.
func readBackup(s *verb.Streams, name string, do func(io.Reader) error) error {
	in := s.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return verb.Usage(err.Error(), "name a file that airlock state backup has written")
		}
		defer file.Close()
		in = file
	}
	err := do(in)
	if errors.As(err, new(*backup.DamagedError)) {
		return verb.WithHint(err, "take an older backup: `airlock state verify FILE` checks it", verb.ExitFailed)
	}
	return err
}

type stateRestoreVerb struct {
	verb.AuditFlags
	File string `arg:"" help:"The backup; - is stdin."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run restores a backup and names what the time since then has changed.
func (v *stateRestoreVerb) Run(ctx context.Context, s *verb.Streams) error {
	to, err := places(v.AuditFlags)
	if err != nil && v.Config == "" { // the backup confirms the configuration of a directory
		return verb.WithHint(err, "airlock state restore --config FILE "+visible.Word(v.File), verb.ExitUsage)
	}
	if err != nil {
		return err
	}
	return readBackup(s, v.File, func(r io.Reader) error {
		m, report, err := backup.Restore(ctx, r, to)
		if full, ok := errors.AsType[*backup.NotEmptyError](err); ok {
			return verb.WithHint(err, fmt.Sprintf("end Airlock and move it away: airlock stop; mv %s %s",
				visible.Word(full.Path), visible.Word(filepath.Clean(full.Path)+".old")), verb.ExitUsage)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "airlock: tokens, sign-ins and agents are as at %s: end again what was revoked since "+
			"(airlock tokens list, airlock agents list)\n", verb.Clean(m.Created))
		return writeManifest(s, v.JSON, "restored to "+to.Home, m, &report)
	})
}
