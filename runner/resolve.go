package runner

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Resolve returns the spec with symbolic links in its paths resolved, so that the mounts
// a driver requests compare equal to the mounts it reads back from the kernel. A symbolic link in the path of a live
// mount is an error, because a program with a writable mount could have made it.
func (s Spec) Resolve() (Spec, error) {
	s.Mounts = slices.Clone(s.Mounts)
	given := make([]string, len(s.Mounts))
	for i, m := range s.Mounts {
		given[i] = m.Source
	}
	paths := []*string{&s.Image.RootFS, &s.StateDir}
	for i := range s.Mounts {
		paths = append(paths, &s.Mounts[i].Source)
	}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(*path)
		if err != nil {
			return s, fmt.Errorf("looking for what sandbox %q is made of: %w", s.ID, err)
		}
		*path = real
	}
	for i, m := range s.Mounts {
		if m.Live && m.Source != given[i] {
			return s, fmt.Errorf("mounting %q: its path has a symbolic link: write %q", given[i], m.Source)
		}
	}
	return s, nil
}
