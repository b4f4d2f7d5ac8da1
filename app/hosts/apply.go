package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// done is the record of one init, which Undo needs.
type done struct {
	Time  time.Time  `json:"time"`
	Files []doneFile `json:"files"`
}

// doneFile is a changed host's file.
type doneFile struct {
	Host    string            `json:"host"`
	Path    string            `json:"path"` // the file after resolving symbolic links
	Created bool              `json:"created,omitempty"`
	Added   bool              `json:"added,omitempty"` // Airlock's entry, which was not there before
	Backup  string            `json:"backup,omitempty"`
	Before  string            `json:"before"` // digest
	After   string            `json:"after"`  // digest
	Removed map[string]string `json:"removed,omitempty"`
}

// Apply executes the plan. It first writes the configuration, after validate has accepted it, and
// then the files of the hosts, each with a backup beside it. Changes of hosts' files are noted in
// the file at record before they are made. If a step fails, changed files get their old content
// back.
func (p *Plan) Apply(record string, validate func(path string) error) (err error) {
	edits, entry, err := p.edits()
	if err != nil {
		return err
	}
	if err := p.install(validate); err != nil {
		return err
	}
	if len(p.Changes) == 0 {
		return nil
	}
	history, err := readHistory(record)
	if err != nil {
		return err
	}
	if err := writeHistory(record, append(history, entry)); err != nil {
		return err
	}
	for i, change := range p.Changes {
		if err := replace(change.File, edits[i], entry.Files[i].Backup); err != nil {
			var failed []error
			for j := range i {
				failed = append(failed, restore(p.Changes[j].File))
			}
			return errors.Join(append([]error{fmt.Errorf("changing %s: %w", change.File.Path, err),
				writeHistory(record, history)}, failed...)...)
		}
	}
	return nil
}

// edits returns the new content of every host's file, and the record of the changes.
func (p *Plan) edits() ([][]byte, done, error) {
	note := done{Time: time.Now().UTC()}
	var edits [][]byte
	for _, change := range p.Changes {
		host, file := change.File.Host, change.File
		entry, err := host.format.encode(host.key, Name, host.registration(p.command, p.variables))
		if err != nil {
			return nil, done{}, fmt.Errorf("writing Airlock's entry for %s: %w", host.Title, err)
		}
		removed, err := host.format.texts(file.data, host.key, change.Remove)
		if err != nil {
			return nil, done{}, fmt.Errorf("reading %s: %w", file.Path, err)
		}
		add := map[string]string{Name: entry}
		if file.Registered {
			add = nil
		}
		edited, err := host.format.checkedEdit(file.data, host.key, change.Remove, add)
		if err != nil {
			return nil, done{}, fmt.Errorf("editing %s: %w", file.Path, err)
		}
		edits = append(edits, edited)
		note.Files = append(note.Files, doneFile{
			Host: host.ID, Path: file.target, Created: file.Missing, Added: !file.Registered, Backup: backupName(file),
			Before: canon.Digest(file.data), After: canon.Digest(edited), Removed: removed,
		})
	}
	return edits, note, nil
}

// Draft writes the planned configuration to a temporary file in the same directory, so that
// relative paths mean the same. The caller must call remove.
func (p *Plan) Draft() (path string, remove func() error, err error) {
	dir := filepath.Dir(p.Config)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	draft, err := os.CreateTemp(dir, ".airlock-*.yaml")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.Remove(draft.Name()) }
	_, err = draft.Write(p.config)
	if err := errors.Join(err, draft.Close()); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return draft.Name(), remove, nil
}

// Starts returns the command with which a host starts Airlock with the configuration at path. Its
// environment has the few variables that hosts pass on and those that the servers need.
func (p *Plan) Starts(path string, lookup func(string) (string, bool)) Command {
	command := Command{Path: p.command.Path, Args: slices.Clone(p.command.Args), Env: map[string]string{}}
	for i, argument := range command.Args {
		if argument == p.Config {
			command.Args[i] = path
		}
	}
	for _, name := range slices.Concat(inherited, p.variables) {
		if value, set := lookup(name); set {
			command.Env[name] = value
		}
	}
	maps.Copy(command.Env, p.command.Env)
	return command
}

// install writes the configuration after validate has accepted it.
func (p *Plan) install(validate func(path string) error) error {
	if bytes.Equal(p.config, p.before) {
		return nil
	}
	draft, remove, err := p.Draft()
	if err != nil {
		return err
	}
	if err := errors.Join(validate(draft), remove()); err != nil {
		return err
	}
	return store.WriteFile(p.Config, p.config, 0o600)
}

// backupName returns a free name beside the file.
func backupName(file File) string {
	if file.Missing {
		return ""
	}
	name := file.target + ".before-airlock"
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("%s.before-airlock-%d", file.target, n)
	}
}

// replace writes the backup and then the file, unless the host changed it meanwhile.
func replace(file File, content []byte, backup string) error {
	if file.Missing {
		if err := os.MkdirAll(filepath.Dir(file.target), 0o700); err != nil {
			return err
		}
		return store.WriteFile(file.target, content, file.mode)
	}
	now, _, err := readRegular(file.target)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, file.data) {
		return errors.New("the host changed it just now; try again")
	}
	if unwritable := writable(file.target); unwritable != nil {
		return reason(unwritable)
	}
	if err := store.WriteFile(backup, file.data, file.mode); err != nil {
		return err
	}
	return store.WriteFile(file.target, content, file.mode)
}

// writable returns an error if the file may not be written. A rename would not check that.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// restore writes the content that a file had when it was read.
func restore(file File) error {
	if file.Missing {
		return os.Remove(file.target)
	}
	return store.WriteFile(file.target, file.data, file.mode)
}

// Undone is a file that Undo dealt with.
type Undone struct {
	Path string
	// How is what Undo did: "restored" from the backup, "edited" because the file had changed
	// since, "removed" because init had created it, "unchanged", or "gone since" with the path of
	// the backup.
	How string
}

// Undo reverts the changes that each noted init made to the files of hosts, newest first. A file
// that has changed since keeps these changes: Undo only removes Airlock's entry and adds the
// servers again. A file that cannot be restored stays noted and does not prevent others from being
// restored. Airlock's own configuration stays.
func Undo(record string) ([]Undone, error) {
	history, err := readHistory(record)
	if err != nil {
		return nil, err
	}
	var all []Undone
	var failed []error
	kept := map[string]bool{} // paths of files that keep later changes
	var remaining []done
	for _, entry := range slices.Backward(history) {
		var left []doneFile
		for _, file := range slices.Backward(entry.Files) {
			if kept[file.Path] {
				left = append(left, file)
				continue
			}
			how, err := file.undo()
			if err != nil {
				failed = append(failed, fmt.Errorf("restoring %s: %w", file.Path, reason(err)))
				left, kept[file.Path] = append(left, file), true
				continue
			}
			all = append(all, Undone{file.Path, how})
		}
		if len(left) > 0 {
			slices.Reverse(left)
			remaining = append(remaining, done{Time: entry.Time, Files: left})
		}
	}
	slices.Reverse(remaining)
	return all, errors.Join(append(failed, writeHistory(record, remaining))...)
}

func (f doneFile) undo() (string, error) {
	now, mode, err := readRegular(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.Created:
		return "unchanged", nil
	case errors.Is(err, fs.ErrNotExist):
		return "gone since, its backup is " + f.Backup, nil
	}
	if err != nil {
		return "", err
	}
	if unwritable := writable(f.Path); unwritable != nil {
		return "", unwritable
	}
	switch digest := canon.Digest(now); {
	case digest == f.Before && !f.Created:
		return "unchanged", nil
	case digest == f.After && f.Created:
		return "removed", os.Remove(f.Path)
	case digest == f.After:
		backup, _, err := readRegular(f.Backup)
		if err == nil && canon.Digest(backup) == f.Before {
			return "restored", errors.Join(store.WriteFile(f.Path, backup, mode), os.Remove(f.Backup))
		}
	}
	host, known := Find(f.Host)
	if !known {
		return "", fmt.Errorf("there is no host %q", f.Host)
	}
	host = host.of(now)
	servers, err := host.format.servers(now, host.key)
	if err != nil {
		return "", err
	}
	add := map[string]string{}
	for name, text := range f.Removed {
		if servers[name] == nil {
			add[name] = text
		}
	}
	var remove []string
	if f.Added {
		remove = []string{Name}
	}
	edited, err := host.format.checkedEdit(now, host.key, remove, add)
	if err != nil {
		return "", err
	}
	return "edited", store.WriteFile(f.Path, edited, mode)
}

func readHistory(path string) ([]done, error) {
	data, err := store.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var history []done
	if err := strictjson.UnmarshalOpen(data, &history); err != nil {
		return nil, fmt.Errorf("reading what was done to hosts' files, %q: %w", path, err)
	}
	return history, nil
}

func writeHistory(path string, history []done) error {
	data, err := json.MarshalIndent(history, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return store.WriteFile(path, append(data, '\n'), 0o600)
}
