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
	for _, folder := range subfolders(filepath.Join(b.dir, b.def.Name)) {
		if filepath.Base(folder) != keep {
			b.pruneFolder(folder)
		}
	}
	for _, folder := range subfolders(filepath.Join(b.dir, "bases")) {
		if folder != currentBase && strings.HasPrefix(filepath.Base(folder), b.def.Name+"-") {
			b.pruneFolder(folder)
		}
	}
}

// pruneFolder moves the folder out of sight, so that nobody opens a half-removed
// one, and removes it.
func (b *builder) pruneFolder(folder string) {
	lock, err := store.TryHold(folder, store.Exclusive)
	if err != nil {
		b.say.step(fmt.Sprintf("keeping %s, which is in use", filepath.Base(folder)))
		return
	}
	defer lock.Release()
	doomed := filepath.Join(b.work, filepath.Base(folder))
	if err := os.Rename(folder, doomed); err != nil {
		b.say.step(fmt.Sprintf("could not remove %q: %v", folder, err))
		return
	}
	if err := os.RemoveAll(doomed); err != nil {
		b.say.step(fmt.Sprintf("could not remove %q: %v", doomed, err))
	}
}

func subfolders(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, filepath.Join(dir, entry.Name()))
		}
	}
	return folders
}
