package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/store"
)

// configFlag is the flag that all verbs with a configuration share.
type configFlag struct {
	Config string `placeholder:"FILE" help:"The configuration; by default what $$AIRLOCK_CONFIG names, ./airlock.yaml, or the one in the user's configuration directory."`
}

// load reads the configuration and prints what is odd about it.
func (f configFlag) load(stderr io.Writer) (*config.Config, error) {
	return f.loadWith(stderr, os.LookupEnv)
}

// loadPlaces reads the configuration for verbs that only need to know where
// things are: credentials that this environment lacks do not matter to them.
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
	path := f.Config
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("looking for a configuration: %w", err)
		}
		path = config.Find(dir, os.LookupEnv)
	}
	c, err := config.Load(path, env)
	if err != nil {
		return nil, advise(err)
	}
	for _, finding := range config.Lint(c) {
		fmt.Fprintf(stderr, "airlock: %v\n", finding)
		if hint := finding.Hint(); hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", hint)
		}
	}
	return c, nil
}

// places are the directories that a system works in.
type places struct {
	home, audit, keys, wrappers, approvals, recordings string
}

func findPlaces(c *config.Config) (places, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return places{}, err
	}
	return places{
		home: home, audit: auditDir(c, home), keys: store.Keys(home),
		wrappers: store.Wrappers(home), approvals: store.Approvals(home), recordings: store.Recordings(home),
	}, nil
}

// auditDir is where the audit log lies.
func auditDir(c *config.Config, home string) string {
	if c.Audit.Path != "" {
		return c.Audit.Path
	}
	return store.Audit(home)
}
