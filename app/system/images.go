package system

import (
	"fmt"
	"math"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

// Extra returns the packages that the configuration asks for in the image that runs a
// language, as its lock file names them. images.ErrUnlocked says that they are not locked.
func Extra(c *config.Config, language string) (images.Extra, error) {
	wanted := c.Images.Wanted(language)
	if len(wanted) == 0 {
		return images.Extra{}, nil
	}
	lock, err := images.ReadPackageLock(c.LockFile())
	if err != nil {
		return images.Extra{}, err
	}
	return lock.Extra(language, wanted)
}

// openImages opens every image that runs code, with the packages that are configured;
// undo closes them.
func openImages(c *config.Config, home string, undo *cleanup.Stack) (map[string]runner.Image, error) {
	opened := map[string]runner.Image{}
	for _, definition := range images.Languages() {
		extra, err := Extra(c, definition.Language)
		if err != nil {
			return nil, err
		}
		image, err := openImage(home, definition.Name, extra, undo)
		if err != nil {
			return nil, err
		}
		if len(extra.Wheels) > 0 {
			image.Env = append(image.Env, numericThreads(c.Sandbox.CPUs)...)
		}
		opened[definition.Language] = image
	}
	return opened, nil
}

// numericThreads are the variables that keep the libraries of numeric packages from starting
// a thread for each processor of the host, of which a sandbox may use few.
func numericThreads(cpus float64) []string {
	threads := max(1, int(math.Ceil(cpus)))
	var env []string
	for _, name := range []string{"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} {
		env = append(env, fmt.Sprintf("%s=%d", name, threads))
	}
	return env
}

// openImage opens one image; undo closes it.
func openImage(home, name string, extra images.Extra, undo *cleanup.Stack) (runner.Image, error) {
	definition, err := images.Find(name)
	if err != nil {
		return runner.Image{}, err
	}
	image, err := images.OpenWith(home, name, extra)
	if err != nil {
		return runner.Image{}, err
	}
	undo.Add(image.Close)
	return runner.Image{
		Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args, Env: image.Env,
		Unsaved: !definition.Restorable(),
	}, nil
}

// Packages are those that code finds installed, as the configuration asks for them.
type Packages struct{ Python, Node []string }

// Packages are those that code finds installed.
func (s *System) Packages() Packages {
	return Packages{s.config.Images.Python.Packages, s.config.Images.Node.Packages}
}
