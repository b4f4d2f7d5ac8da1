package images

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/store"
)

// prune removes the images and base layers that the new record replaces, except those in use by
// a running process. A failure is reported but not returned: a later build tries again.
func (b *builder) prune(current Record, layers []madeLayer) {
	keep := strings.TrimPrefix(current.Digest, "sha256:")
	for _, directory := range subdirectories(filepath.Join(b.dir, b.directory())) {
		if filepath.Base(directory) != keep {
			b.pruneDirectory(directory)
		}
	}
	for _, directory := range subdirectories(filepath.Join(b.dir, "bases")) {
		used := slices.ContainsFunc(layers, func(l madeLayer) bool { return filepath.Dir(l.path) == directory })
		if !used && b.isOwnLayer(filepath.Base(directory)) {
			b.pruneDirectory(directory)
		}
	}
	b.pruneVariants()
}

// keptVariants is how many images with other packages a build leaves of an image, beside
// the one that it made: configurations may take turns.
const keptVariants = 3

// keptServers is how many images of servers a build leaves beside the one that it made.
const keptServers = 63

// pruneVariants removes the images with other packages than this one that were built
// longest ago, with their layers of packages.
func (b *builder) pruneVariants() {
	prefix, _, varies := strings.Cut(b.directory(), "+")
	kept := keptVariants
	switch {
	case !varies:
		return
	case prefix == serverPrefix:
		kept = keptServers
	}
	type variant struct {
		name  string
		built time.Time
	}
	var others []variant
	for _, directory := range subdirectories(b.dir) {
		name := filepath.Base(directory)
		if !strings.HasPrefix(name, prefix+"+") || name == b.directory() {
			continue
		}
		v := variant{name: name}
		if info, err := os.Stat(filepath.Join(directory, currentFile)); err == nil {
			v.built = info.ModTime()
		}
		others = append(others, v)
	}
	slices.SortFunc(others, func(a, b variant) int { return b.built.Compare(a.built) })
	for _, old := range others[min(kept, len(others)):] {
		b.removeVariant(old.name)
	}
}

// removeVariant removes an image with packages, unless it is being built or used.
func (b *builder) removeVariant(name string) {
	lock, err := store.TryAcquire(filepath.Join(b.dir, name+".lock"), store.Exclusive)
	if err != nil {
		return
	}
	defer lock.Release()
	for _, directory := range subdirectories(filepath.Join(b.dir, name)) {
		b.pruneDirectory(directory)
	}
	if len(subdirectories(filepath.Join(b.dir, name))) > 0 {
		return // in use
	}
	for _, directory := range subdirectories(filepath.Join(b.dir, "bases")) {
		if prefix, _ := cutLast(filepath.Base(directory), "-"); prefix == name+"-packages" {
			b.pruneDirectory(directory)
		}
	}
	if err := os.RemoveAll(filepath.Join(b.dir, name)); err != nil {
		b.say.step(fmt.Sprintf("could not remove %q: %v", name, err))
	}
}

// isOwnLayer reports whether a cached layer is of this image alone, or is the base layer
// that it shares with others.
func (b *builder) isOwnLayer(name string) bool {
	prefix, _ := cutLast(name, "-")
	return prefix == b.baseName() || prefix == b.directory()+"-packages"
}

// cutLast is strings.Cut at the last separator.
func cutLast(text, separator string) (before, after string) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):]
	}
	return text, ""
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
