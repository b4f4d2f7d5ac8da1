package runner

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Resolve returns the spec with symbolic links in its paths resolved, so that the mounts
// a driver requests compare equal to the mounts it reads back from the kernel.
func (s Spec) Resolve() (Spec, error) {
	s.Mounts = slices.Clone(s.Mounts)
	paths := []*string{&s.Image.RootFS, &s.SocketDir, &s.StateDir}
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
	return s, nil
}
