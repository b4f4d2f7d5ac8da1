package runner

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Resolve returns the spec with its paths replaced by their real ones, as the
// kernel names them: what a driver gives a sandbox must be what it reads back.
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
