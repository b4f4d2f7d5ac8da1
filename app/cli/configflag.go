package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/app/system"
)

// configFlag is the --config flag. All verbs that read the configuration have it.
type configFlag struct {
	Config string `placeholder:"FILE" help:"The configuration; by default what $$AIRLOCK_CONFIG names, ./airlock.yaml, or the one in the user's configuration directory."`
}

// load reads the configuration and prints its warnings.
func (f configFlag) load(stderr io.Writer) (*config.Config, error) {
	return f.loadWith(stderr, os.LookupEnv)
}

// loadPlaces reads the configuration for verbs that need only its paths. Credentials may be
// missing in the environment.
func (f configFlag) loadPlaces() (*config.Config, error) {
	return f.loadWith(io.Discard, func(name string) (string, bool) {
		value, ok := os.LookupEnv(name)
		if !ok {
			value = "unset"
		}
		return value, true
	})
}

func (f configFlag) loadWith(stderr io.Writer, env func(string) (string, bool)) (*config.Config, error) {
	path, isProject := f.Config, false
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("looking for a configuration: %w", err)
		}
		path, isProject = configfile.Find(dir, os.LookupEnv), configfile.IsProject(dir, os.LookupEnv)
	}
	c, err := config.Load(path, env)
	if err == nil && isProject {
		err = system.CheckConfirmed(c)
	}
	if err != nil {
		system.HoldMentioned(path)
		return nil, system.Advise(err)
	}
	system.HoldPrinted(c)
	for _, finding := range config.Lint(c) {
		fmt.Fprintf(stderr, "airlock: %v\n", finding)
		if hint := finding.Hint(); hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", hint)
		}
	}
	return c, nil
}
