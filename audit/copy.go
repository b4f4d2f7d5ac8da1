package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// Part is a file of a log at one moment: the first Size bytes of the file at Path, or Content.
type Part struct {
	Name    string // "log/" or "evidence/" and a slash-separated path, see PartPath
	Path    string
	Size    int64
	Content []byte // if Path is empty
}

// Parts returns all files of a log at one moment, for a copy. Processes that have the log open
// wait while the files are listed, not while they are read: afterwards files only grow, or are
// removed by retention. A log that does not exist has no parts.
func Parts(dir, keys string) (parts []Part, err error) {
	at, err := findPlaces(dir, keys)
	if err != nil {
		return nil, err
	}
	lock, err := openPlain(filepath.Join(dir, lockFile), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	err = files.WithLock(lock, files.Shared, func() error {
		parts, err = at.parts()
		return err
	})
	return parts, err
}

func (p places) parts() ([]Part, error) {
	var parts []Part
	err := filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && name != p.keys {
			return err
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		relative, err := filepath.Rel(p.dir, name)
		if err != nil || relative == lockFile {
			return err
		}
		part := Part{Name: path.Join(logParts, filepath.ToSlash(relative)), Path: name}
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) { // kept arguments that were removed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		part.Size = info.Size()
		if relative == headFile { // it is overwritten in place
			part.Path = ""
			if part.Content, err = readPlain(name); err != nil {
				return err
			}
		}
		parts = append(parts, part)
		return nil
	})
	for name, file := range p.evidenceParts() {
		content, readErr := files.ReadFile(file)
		if errors.Is(readErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, readErr)
		parts = append(parts, Part{Name: path.Join(evidenceParts, name), Content: content})
	}
	return parts, err
}

const (
	logParts      = "log"
	evidenceParts = "evidence"
)

// evidenceParts are the files beside the keys that belong to the log. Their names depend on the
// paths of both directories.
func (p places) evidenceParts() map[string]string {
	return map[string]string{"position": p.position, ofWitness: p.progressFile(ofWitness),
		ofCluster: p.progressFile(ofCluster)}
}

// PartPath returns the path of a part in a log whose directories may differ from those of the
// copied one.
func PartPath(dir, keys, name string) (string, error) {
	at, err := findPlaces(dir, keys)
	if err != nil {
		return "", err
	}
	kind, rest, _ := strings.Cut(name, "/")
	if kind == logParts && filepath.IsLocal(rest) {
		return filepath.Join(dir, filepath.FromSlash(rest)), nil
	}
	if file, ok := at.evidenceParts()[rest]; ok && kind == evidenceParts {
		return file, nil
	}
	return "", fmt.Errorf("%q is not a part of an audit log", name)
}

// EachEvidence calls visit with the name, as in a Part, and the path of each existing file beside
// the keys that belongs to the log.
func EachEvidence(dir, keys string, visit func(name, path string) error) error {
	at, err := findPlaces(dir, keys)
	if err != nil {
		return err
	}
	for name, file := range at.evidenceParts() {
		if isThere(file) {
			err = errors.Join(err, visit(path.Join(evidenceParts, name), file))
		}
	}
	return err
}

// IsEvidence reports whether a file in the directory of keys belongs to one log at its present
// path, so that it is copied with Parts or not at all.
func IsEvidence(name string) bool {
	for _, word := range []string{"position", "verified", "writers", ofWitness, ofCluster} {
		if strings.HasPrefix(name, "audit-"+word+"-") {
			return true
		}
	}
	return false
}
