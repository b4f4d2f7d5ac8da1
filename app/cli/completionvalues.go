package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/audit"
)

// completedRuns is how many runs, the newest, a completion offers.
const completedRuns = 20

// known returns what a value of the command line can be that depends on this user:
// names in the configuration, runs in the audit log. What cannot be read offers nothing.
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
		return append(found, candidate{"exit-codes", "What the exit codes mean."}, candidate{"environment", "Which variables are heeded."})
	case "profile", "name", "server", "run":
	default:
		return nil
	}
	c, err := configFlag{Config: flagValue(words, "--config")}.loadPlaces()
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

// newestRuns offers runs with when they began and how they ended.
func newestRuns(c *config.Config) []candidate {
	directories, err := system.FindDirectories(c)
	if err != nil || isMissing(directories.Audit) {
		return nil
	}
	runs, err := audit.Runs(directories.Audit, completedRuns)
	if err != nil {
		return nil
	}
	var found []candidate
	for _, run := range runs {
		listed := system.ListRun(run)
		found = append(found, candidate{listed.ID, shortBegan(listed.Began) + " " + listed.State})
	}
	return found
}
