package images

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/store"
)

// prune removes the images and base layers that the new record replaces, except
// those that a living process holds. What cannot be removed now is removed by a
// later build: that is told but is no reason to fail.
func (b *builder) prune(current Record, currentBase string) {
	keep := strings.TrimPrefix(current.Digest, "sha256:")
	for _, directory := range subdirectories(filepath.Join(b.dir, b.def.Name)) {
		if filepath.Base(directory) != keep {
			b.pruneDirectory(directory)
		}
	}
	for _, directory := range subdirectories(filepath.Join(b.dir, "bases")) {
		if directory != currentBase && strings.HasPrefix(filepath.Base(directory), b.def.Name+"-") {
			b.pruneDirectory(directory)
		}
	}
}

// pruneDirectory moves the directory out of sight, so that no process opens a half-removed
// one, and removes it.
func (b *builder) pruneDirectory(directory string) {
	lock, err := store.TryHold(directory, store.Exclusive)
	if err != nil {
		b.say.step(fmt.Sprintf("keeping %s, which is in use", filepath.Base(directory)))
		return
	}
	defer lock.Release()
	doomed := filepath.Join(b.work, filepath.Base(directory))
	if err := os.Rename(directory, doomed); err != nil {
		b.say.step(fmt.Sprintf("could not remove %q: %v", directory, err))
		return
	}
	if err := os.RemoveAll(doomed); err != nil {
		b.say.step(fmt.Sprintf("could not remove %q: %v", doomed, err))
	}
}

func subdirectories(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var directories []string
	for _, entry := range entries {
		if entry.IsDir() {
			directories = append(directories, filepath.Join(dir, entry.Name()))
		}
	}
	return directories
}
