package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
)

// completedRuns is the number of runs that a completion offers, newest first.
const completedRuns = 20

// known returns candidates that depend on this user: names in the configuration and runs in
// the audit log. Sources that cannot be read are ignored.
func known(app *kong.Node, v *kong.Value, words []string) []candidate {
	switch v.Name {
	case "lang":
		return plainCandidates([]string{"python", "node"})
	case "host", "print":
		var found []candidate
		for _, host := range hosts.All() {
			found = append(found, candidate{host.ID, host.Title})
		}
		return found
	case "topic":
		var found []candidate
		for _, child := range app.Children {
			if !child.Hidden {
				found = append(found, candidate{child.Name, child.Help})
			}
		}
		return append(found, candidate{"exit-codes", "What the exit codes mean."},
			candidate{"environment", "Which variables are heeded."})
	case "profile", "name", "server", "run":
	default:
		return nil
	}
	c, err := verb.ConfigFlag{Config: verb.FlagValue(words, "--config")}.LoadPlaces()
	if err != nil {
		return nil
	}
	switch v.Name {
	case "server":
		var ids []string
		for _, server := range c.Servers {
			ids = append(ids, server.ID)
		}
		return plainCandidates(ids)
	case "run":
		return newestRuns(c)
	}
	var names []string
	for _, profile := range c.Profiles {
		names = append(names, profile.Name)
	}
	return plainCandidates(names)
}

func plainCandidates(words []string) []candidate {
	var found []candidate
	for _, word := range words {
		if !strings.ContainsAny(word, " \t\r\n") { // shells would split it
			found = append(found, candidate{word, ""})
		}
	}
	return found
}

// newestRuns returns the newest runs, with their start times and outcomes.
func newestRuns(c *config.Config) []candidate {
	directories, err := setup.FindDirectories(c)
	if err != nil || verb.IsMissing(directories.Audit) {
		return nil
	}
	runs, err := audit.Runs(directories.Audit, completedRuns, audit.Period{})
	if err != nil {
		return nil
	}
	var found []candidate
	for _, run := range runs {
		listed := runlog.Summarize(run)
		found = append(found, candidate{listed.ID, verb.ShortBegan(listed.Began) + " " + listed.State})
	}
	return found
}
