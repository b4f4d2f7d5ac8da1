package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

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
	extra, err := c.ExtraPackages(definition.Language)
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
		var known *setup.Error
		var advised interface{ Hint() string }
		advice := "airlock doctor shows what is wrong with it; `airlock images build` builds it anew"
		switch {
		case errors.As(setup.Advise(cause), &known):
		case s.opts.Serving:
			known = &setup.Error{Err: errors.New("its image is broken"), Advice: advice}
		case errors.As(cause, &advised):
			known = &setup.Error{Err: cause, Advice: advised.Hint()}
		default:
			known = &setup.Error{Err: cause, Advice: advice}
		}
		refusals[language] = &setup.Error{Err: fmt.Errorf("no program can run in the language %q: %w", language,
			known.Err),
			Advice: known.Advice}
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
		Fresh:   image.Fresh,
	}, nil
}

// Packages are the packages that the configuration installs in the images.
type Packages struct{ Python, Node []string }

// NetworkOf returns the hosts that runs of a caller may ask for.
func (s *System) NetworkOf(who caller.Caller) []egress.Host {
	return s.Config().Network(cmp.Or(who.Profile, s.opts.Profile))
}

// Network returns the hosts that runs may ask for, as NAME:PORT: those of the profile that all callers have, or of
// every profile.
func (s *System) Network() []string {
	listed := s.config.Networks()
	if s.opts.Profile != "" {
		listed = s.config.Network(s.opts.Profile)
	}
	hosts := make([]string, len(listed))
	for i, host := range listed {
		hosts[i] = host.String()
	}
	return hosts
}

// Packages returns the packages that are installed for code.
func (s *System) Packages() Packages {
	return Packages{s.config.Images.Python.Packages, s.config.Images.Node.Packages}
}
