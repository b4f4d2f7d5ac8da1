package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// Extra returns the packages that the configuration adds to the image of a language, as the lock
// file names them. If they are not locked, the error is images.ErrUnlocked.
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

// openImages opens every image that runs code, with the configured packages; undo closes them.
// missing has the errors of the images that cannot be opened, by language. If no image can be
// opened, openImages returns all of these errors.
func openImages(c *config.Config, home string, undo *cleanup.Stack) (opened map[string]runner.Image,
	missing map[string]error, _ error) {
	opened, missing = map[string]runner.Image{}, map[string]error{}
	var all error
	for _, definition := range images.Languages() {
		image, err := openLanguage(c, home, definition, undo)
		if err != nil {
			missing[definition.Language] = err
			if all == nil {
				all = err
			} else {
				all = fmt.Errorf("%w; %w", all, err)
			}
			continue
		}
		opened[definition.Language] = image
	}
	if len(opened) == 0 {
		return nil, nil, all
	}
	return opened, missing, nil
}

// openLanguage opens the image that runs a language.
func openLanguage(c *config.Config, home string, definition images.Definition, undo *cleanup.Stack) (runner.Image,
	error) {
	extra, err := Extra(c, definition.Language)
	if err != nil {
		return runner.Image{}, err
	}
	image, err := openImage(home, definition.Name, extra, undo)
	if err == nil && len(extra.Wheels) > 0 {
		image.Env = append(image.Env, numericThreads(c.Sandbox.CPUs)...)
	}
	return image, err
}

// refuseMissing returns the errors, with hints, for the runs of each language whose image is
// missing. Other languages are not affected. If Airlock serves, callers see these errors, so the
// error for a broken image has no cause; the cause is logged.
func (s *System) refuseMissing(ctx context.Context, missing map[string]error) map[string]error {
	refusals := map[string]error{}
	for language, cause := range missing {
		var known *SetupError
		var advised interface{ Hint() string }
		advice := "airlock doctor shows what is wrong with it; `airlock images build` builds it anew"
		switch {
		case errors.As(Advise(cause), &known):
		case s.opts.Serving:
			known = &SetupError{errors.New("its image is broken"), advice}
		case errors.As(cause, &advised):
			known = &SetupError{cause, advised.Hint()}
		default:
			known = &SetupError{cause, advice}
		}
		refusals[language] = &SetupError{fmt.Errorf("no program can run in the language %q: %w", language, known.Err),
			known.Advice}
		if s.opts.Serving {
			s.opts.Logger.WarnContext(ctx, "the programs of one language are refused",
				slog.String(telemetry.KeyImage, language), slog.Any(telemetry.KeyError, cause))
		}
	}
	return refusals
}

// numericThreads returns environment variables that limit the threads of numeric libraries to the
// CPUs of a sandbox. By default the libraries start a thread for each processor of the host.
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
		Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args,
		Env:     image.Env,
		Unsaved: !definition.Restorable(),
	}, nil
}

// Packages are the packages that the configuration installs in the images.
type Packages struct{ Python, Node []string }

// Network returns the hosts that runs may ask for, as NAME:PORT.
func (s *System) Network() []string {
	hosts := make([]string, len(s.config.Sandbox.Network))
	for i, host := range s.config.Sandbox.Network {
		hosts[i] = host.String()
	}
	return hosts
}

// Packages returns the packages that are installed for code.
func (s *System) Packages() Packages {
	return Packages{s.config.Images.Python.Packages, s.config.Images.Node.Packages}
}
