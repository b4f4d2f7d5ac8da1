package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/internal/store"
)

// maxFile is the largest configuration file in bytes that is read. Claude Code
// keeps the history of projects in its file.
const maxFile = 64 << 20

// File is one configuration file of a host.
type File struct {
	Host       Host
	Path       string   // the path that the host uses
	Project    bool     // it belongs to a project, not to the user
	Missing    bool     // there is no such file yet
	Registered bool     // it already has an entry for Airlock
	Args       []string // of that entry
	Entries    []Entry
	Elsewhere  []string // servers of single projects that it names, too: "PROJECT: NAME"
	Err        error    // why the file cannot be used; the other fields below Path are empty then

	target string // the file behind symbolic links
	data   []byte
	mode   fs.FileMode
}

// LinkTarget returns the file behind the symbolic links of Path, or "" if Path has no links.
func (f File) LinkTarget() string {
	if f.target == f.Path {
		return ""
	}
	return f.target
}

// Look reads the files of the hosts with the given IDs, or of all hosts if ids is empty. If project
// is set, it also reads the files of the project in e.Directory. It omits missing files, except
// those of hosts that were named.
func Look(e Environment, ids []string, project bool) ([]File, error) {
	for _, id := range ids {
		if _, known := Find(id); !known {
			return nil, fmt.Errorf("there is no host %q", id)
		}
	}
	var files []File
	for _, host := range All() {
		if len(ids) > 0 && !slices.Contains(ids, host.ID) {
			continue
		}
		for _, path := range host.userFiles(e) {
			if file := read(host, path, false, e); !file.Missing || len(ids) > 0 {
				files = append(files, file)
			}
		}
		for _, name := range host.project {
			if !project {
				break
			}
			if file := read(host, filepath.Join(e.Directory, name), true, e); !file.Missing {
				files = append(files, file)
			}
		}
	}
	return files, nil
}

func read(host Host, path string, project bool, e Environment) File {
	file := File{Host: host, Path: path, Project: project, target: path, mode: 0o600}
	if err := store.CheckOwner(path); err != nil {
		file.Err = err
		return file
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			file.Err = errors.New("it is a symbolic link that leads nowhere")
			return file
		}
		file.Missing = true
		return file
	}
	if err == nil {
		file.target = target
		file.data, file.mode, err = readRegular(target)
	}
	if err != nil {
		file.Err = reason(err)
		return file
	}
	file.Host = host.of(file.data)
	servers, err := file.Host.format.servers(file.data, file.Host.key)
	if err != nil {
		file.Err = err
		return file
	}
	off, err := host.disabled(file, e)
	if err != nil {
		file.Err = err
		return file
	}
	if host.ID == "claude-code" {
		file.Elsewhere = projectServers(file.data)
	}
	for name, f := range servers {
		entry, counts := file.Host.entry(name, f, e)
		switch {
		case !counts || names(off, name):
		case entry.isAirlock():
			file.Registered, file.Args = true, entry.Args
		default:
			file.Entries = append(file.Entries, entry)
		}
	}
	slices.SortFunc(file.Entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return file
}

// projectServers returns the servers that Claude Code's file names for single
// projects (its scope "local").
func projectServers(data []byte) []string {
	content, err := decodeJWCC(plainText(data))
	if err != nil {
		return nil
	}
	projects, _ := content["projects"].(map[string]any)
	var found []string
	for _, project := range sortedKeys(projects) {
		settings, _ := projects[project].(map[string]any)
		servers, _ := settings["mcpServers"].(map[string]any)
		for _, name := range sortedKeys(servers) {
			entry, _ := servers[name].(map[string]any)
			if !(Entry{Command: fields(entry).text("command"), Args: fields(entry).texts("args")}).isAirlock() {
				found = append(found, project+": "+name)
			}
		}
	}
	return found
}

// readRegular reads a regular file of at most maxFile bytes.
func readRegular(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("it is not a regular file")
	}
	if info.Size() > maxFile {
		return nil, 0, fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	f, err := store.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, info.Mode().Perm(), err
}

// reason is an error without the path, which the caller names.
func reason(err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return cause.Err
	}
	return err
}
