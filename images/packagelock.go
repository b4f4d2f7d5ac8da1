package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// PackageLock is the content of a lock file: which files the packages are that a
// configuration asks for, by language. It is JSON, to be kept beside the configuration
// and reviewed with it.
type PackageLock struct {
	Python *PythonLock `json:"python,omitempty"`
	Node   *NodeLock   `json:"node,omitempty"`
	// Servers has the locks of the images of contained servers, by the ID of the server.
	Servers map[string]PackageLock `json:"servers,omitempty"`
}

// WithServer returns a copy with the lock of a server.
func (l PackageLock) WithServer(id string, lock PackageLock) PackageLock {
	l.Servers = maps.Clone(l.Servers)
	if l.Servers == nil {
		l.Servers = map[string]PackageLock{}
	}
	l.Servers[id] = lock
	return l
}

// PythonLock names the wheels for each architecture.
type PythonLock struct {
	Wanted []string             `json:"wanted"`
	Wheels map[string][]Package `json:"wheels"` // by Go's name of the architecture
}

// NodeLock holds npm's own lock file, which names the files for all architectures.
type NodeLock struct {
	Wanted      []string        `json:"wanted"`
	PackageLock json.RawMessage `json:"packageLock"`
}

// maxPackageLock bounds a lock file, in bytes.
const maxPackageLock = 16 << 20

// ReadPackageLock reads a lock file. A missing file is treated as empty.
func ReadPackageLock(path string) (PackageLock, error) {
	if err := store.CheckOwner(path); err != nil {
		return PackageLock{}, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return PackageLock{}, nil
	}
	if err == nil && info.Size() > maxPackageLock {
		err = fmt.Errorf("it has more than %d bytes", maxPackageLock)
	}
	if err != nil {
		return PackageLock{}, fmt.Errorf("reading the lock file %q: %w", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return PackageLock{}, fmt.Errorf("reading the lock file %q: %w", path, err)
	}
	lock, err := parsePackageLock(text)
	if err != nil {
		return PackageLock{}, &PackageError{fmt.Sprintf("the lock file %q is damaged: %v", path, err),
			"remove it and run `airlock images build`, which writes it anew"}
	}
	return lock, nil
}

func parsePackageLock(text []byte) (PackageLock, error) {
	var lock PackageLock
	if err := strictjson.Unmarshal(text, &lock); err != nil {
		return PackageLock{}, err
	}
	for id, server := range lock.Servers {
		if err := server.check(); err != nil {
			return PackageLock{}, fmt.Errorf("the lock of the server %q: %w", id, err)
		}
		if len(server.Servers) > 0 {
			return PackageLock{}, fmt.Errorf("the lock of the server %q has servers", id)
		}
	}
	return lock, lock.check()
}

// check returns an error if a file of a package has no digest.
func (l PackageLock) check() error {
	if l.Python != nil {
		for _, wheels := range l.Python.Wheels {
			for _, pkg := range wheels {
				if err := pkg.checkWheel(); err != nil {
					return err
				}
			}
		}
	}
	if l.Node != nil {
		if _, err := checkModules(l.Node.PackageLock); err != nil {
			return err
		}
	}
	return nil
}

// Write replaces the lock file at path.
func (l PackageLock) Write(path string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the lock file %q: %w", path, err)
	}
	if err := store.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the lock file %q: %w", path, err)
	}
	return nil
}

// Extra returns the locked files of the wanted packages for an image of the language on this
// architecture. It returns ErrUnlocked if other packages are locked.
func (l PackageLock) Extra(language string, wanted []string) (Extra, error) {
	extra := Extra{Wanted: wanted}
	switch {
	case len(wanted) == 0:
		return Extra{}, nil
	case language == "python" && l.Python != nil && slices.Equal(l.Python.Wanted, wanted):
		extra.Wheels = l.Python.Wheels[hostArch]
	case language == "node" && l.Node != nil && slices.Equal(l.Node.Wanted, wanted):
		var compact bytes.Buffer // however the file is indented
		if err := json.Compact(&compact, l.Node.PackageLock); err != nil {
			return Extra{}, err
		}
		extra.Modules = compact.Bytes()
	}
	if extra.empty() {
		return Extra{}, fmt.Errorf("image %q: %w: the configuration asks for %s", language, ErrUnlocked,
			strings.Join(wanted, ", "))
	}
	return extra, nil
}
