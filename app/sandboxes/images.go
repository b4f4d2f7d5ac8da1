package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// OpenImages opens every image that runs code, with the configured packages; undo closes them.
// missing has the errors of the images that cannot be opened, by language. If no image can be
// opened, OpenImages returns all of these errors.
func OpenImages(c *config.Config, home string, undo *cleanup.Stack) (opened map[string]runner.Image,
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
	image, err := OpenImage(home, definition.Name, extra, undo)
	if err == nil && len(extra.Wheels) > 0 {
		image.Env = append(image.Env, numericThreads(c.Sandbox.CPUs)...)
	}
	return image, err
}

// Refusals returns the errors, with hints, for the runs of each language whose image is
// missing. Other languages are not affected. If Airlock serves, callers see these errors, so the
// error for a broken image has no cause; the cause is logged.
func Refusals(ctx context.Context, missing map[string]error, serving bool,
	logger *slog.Logger) map[string]error {
	refusals := map[string]error{}
	for language, cause := range missing {
		var known *setup.Error
		var advised interface{ Hint() string }
		advice := "airlock doctor shows what is wrong with it; `airlock images build` builds it anew"
		switch {
		case errors.As(setup.Advise(cause), &known):
		case serving:
			known = &setup.Error{Err: errors.New("its image is broken"), Advice: advice}
		case errors.As(cause, &advised):
			known = &setup.Error{Err: cause, Advice: advised.Hint()}
		default:
			known = &setup.Error{Err: cause, Advice: advice}
		}
		refusals[language] = &setup.Error{Err: fmt.Errorf("no program can run in the language %q: %w", language,
			known.Err),
			Advice: known.Advice}
		if serving {
			logger.WarnContext(ctx, "the programs of one language are refused",
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

// OpenImage opens one image; undo closes it.
func OpenImage(home, name string, extra images.Extra, undo *cleanup.Stack) (runner.Image, error) {
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

// ScriptImage returns the image for plain Python scripts: the image of the engines, which has the
// packages of the SDK, with the guest that runs code. It returns nil if the image is not built or
// broken. undo closes the image.
func ScriptImage(home string, serving bool, logger *slog.Logger, undo *cleanup.Stack) (*runner.Image, error) {
	image, err := OpenImage(home, images.Verifier, images.Extra{}, undo)
	if errors.Is(err, images.ErrNotBuilt) || errors.Is(err, images.ErrStale) {
		return nil, nil
	}
	if err != nil { // other programs run without it
		if serving {
			logger.WarnContext(context.Background(), "scripts are refused",
				slog.String(telemetry.KeyImage, images.Verifier), slog.Any(telemetry.KeyError, err))
		}
		return nil, nil
	}
	python, err := images.Find("python")
	if err != nil {
		return nil, err
	}
	// The guest keeps the packages loaded that scripts usually import.
	image.Args = append(slices.Clone(python.Args), "qwed_sdk.engine:preload_scripts")
	// Nothing else is in a script's environment.
	image.Env = []string{"PATH=/usr/bin", "PYTHONPATH=/usr/lib/python3/dist-packages"}
	return &image, nil
}
