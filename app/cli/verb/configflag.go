package verb

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
)

// ConfigFlag is the --config flag. All verbs that read the configuration have it.
type ConfigFlag struct {
	Config string `placeholder:"FILE" help:"The configuration; by default what $$AIRLOCK_CONFIG names, ./airlock.yaml, or the one in the user's configuration directory."`
}

// Load reads the configuration and prints its warnings.
func (f ConfigFlag) Load(stderr io.Writer) (*config.Config, error) {
	return f.loadWith(stderr, os.LookupEnv)
}

// LoadPlaces reads the configuration for verbs that need only its paths. Credentials may be
// missing in the environment.
func (f ConfigFlag) LoadPlaces() (*config.Config, error) {
	return f.loadWith(io.Discard, config.LookupOrUnset)
}

// LoadState is loadPlaces for verbs that an operator needs most when the configuration is broken. If
// it cannot be used, they use the one that was confirmed last, and otherwise the directory of the
// audit log that it names, or the default one.
func (f ConfigFlag) LoadState(stderr io.Writer) (*config.Config, error) {
	c, err := f.LoadPlaces()
	if err == nil {
		return c, nil
	}
	path, _, found := f.locate()
	if _, missing := os.Stat(path); found != nil || path == "" || missing != nil {
		return nil, err
	}
	instead := "the last one that was confirmed is used"
	if c = rules.LastConfirmed(path); c == nil {
		instead = "the defaults are used, with the audit log that it names"
		if c = config.Salvage(path, config.LookupOrUnset); isUnconfirmed(err) {
			c, instead = config.Default(), "the defaults are used"
		}
	}
	fmt.Fprintf(stderr, "airlock: %v\nairlock: %s\n", err, instead)
	return c, nil
}

func isUnconfirmed(err error) bool {
	var broken *config.Error
	return !errors.As(err, &broken)
}

// locate returns the path of the configuration, empty for the built-in one, and whether it was found in
// the current directory.
func (f ConfigFlag) locate() (path string, isProject bool, err error) {
	if f.Config != "" {
		return f.Config, false, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", false, fmt.Errorf("looking for a configuration: %w", err)
	}
	return configfile.Find(dir, os.LookupEnv), configfile.IsProject(dir, os.LookupEnv), nil
}

func (f ConfigFlag) loadWith(stderr io.Writer, env func(string) (string, bool)) (*config.Config, error) {
	path, isProject, err := f.locate()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(path, env)
	if err == nil && isProject {
		err = rules.CheckConfirmed(c)
	}
	if err != nil {
		credentials.HoldMentioned(path)
		return nil, setup.Advise(err)
	}
	credentials.HoldPrinted(c)
	for _, finding := range config.Lint(c) {
		fmt.Fprintf(stderr, "airlock: %v\n", finding)
		if hint := finding.Hint(); hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", hint)
		}
	}
	return c, nil
}
