package upstreams

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// tellMissingLocked notifies about servers that are missing, once for each problem, and about
// servers that are back.
func (c *Catalog) tellMissingLocked() {
	c.tellBackLocked()
	for _, missing := range c.snapshot.Load().Missing("") {
		if missing.Starting || c.told[missing.ServerID] == missing.Problem {
			continue
		}
		c.told[missing.ServerID] = missing.Problem
		c.opts.Notify(c.missingNotice(missing))
	}
}

// missingNotice returns the notice that a server is missing, with a hint.
func (c *Catalog) missingNotice(missing catalog.MissingServer) Notice {
	command := ""
	if server, found := c.config.Load().Server(missing.ServerID); found {
		command = server.Command
	}
	return Notice{
		Text: fmt.Sprintf("the server %q is missing: %s", missing.ServerID, missing.Problem),
		Hint: missingHint(missing.ServerID, command, c.upstreams.Problem(missing.ServerID)), Server: missing.ServerID,
	}
}

// tellBackLocked notifies about servers that were missing and are back.
func (c *Catalog) tellBackLocked() {
	snapshot := c.snapshot.Load()
	for _, id := range slices.Sorted(maps.Keys(c.told)) {
		if len(snapshot.Missing(id)) > 0 {
			continue
		}
		delete(c.told, id)
		server, found := snapshot.Server(id)
		if !found { // it was removed
			continue
		}
		c.opts.Notify(Notice{Text: fmt.Sprintf("the server %q is there again, with %d tools", id, len(server.Tools)),
			Server: id})
	}
}

// tellChanged notifies about tools that are withheld, with a hint for the operator.
func (c *Catalog) tellChanged() {
	for _, notice := range changedNotices(c.pinned.Changed) {
		c.opts.Notify(notice)
	}
}

func changedNotices(changed []pins.Change) []Notice {
	notices := make([]Notice, len(changed))
	for i, change := range changed {
		why := "its definition changed since it was first seen"
		if change.IsNew() {
			why = "nobody has seen the tools of this new server yet"
		}
		notice := Notice{Text: fmt.Sprintf("the tool %s of the server %q is withheld: %s",
			catalog.Quote(change.ToolName), change.ServerID, why)}
		if i == len(changed)-1 {
			notice.Hint = "look at the change with `airlock tools diff`, then `airlock tools accept SERVER TOOL`"
		}
		notices[i] = notice
	}
	return notices
}

// Notices returns the current problems of the servers that callers of a profile see, including
// those that were notified before.
func (c *Catalog) Notices(profile string) []Notice {
	var notices []Notice
	if c.upstreams == nil {
		return nil
	}
	shown := map[string]bool{}
	for _, server := range Seen(c.config.Load(), profile) {
		shown[server.ID] = true
	}
	for _, missing := range c.snapshot.Load().Missing("") {
		if !missing.Starting && shown[missing.ServerID] {
			notices = append(notices, c.missingNotice(missing))
		}
	}
	changed := slices.DeleteFunc(slices.Clone(c.Changed()),
		func(change pins.Change) bool { return !shown[change.ServerID] })
	return append(notices, changedNotices(changed)...)
}

// missingHint returns advice for a server that is missing because of problem, an error of upstream.Set.Problem.
// command is empty for a server at an address.
func missingHint(id, command string, problem error) string {
	key := "mcpServers." + id
	signIn, needsSignIn := errors.AsType[*upstream.SignInError](problem)
	switch {
	case needsSignIn && signIn.Command != "":
		return fmt.Sprintf("run `airlock login %s`; its tools are here as soon as that is done", visible.Word(id))
	case errors.Is(problem, upstream.ErrUnauthorized):
		return fmt.Sprintf("write its credentials under %s.headers", key)
	case errors.Is(problem, upstream.ErrUnreachable):
		return fmt.Sprintf("start the server, or correct %s.url", key)
	case errors.Is(problem, upstream.ErrNoAnswer):
		return fmt.Sprintf("%s.startTimeout gives it more time", key)
	case command == "":
		return fmt.Sprintf("check %s.url and its headers", key)
	case errors.Is(problem, upstream.ErrNoDirectory):
		return fmt.Sprintf("correct %s.cwd", key)
	case errors.Is(problem, upstream.ErrCommandNotFound):
		return InstallHint(command)
	}
	return fmt.Sprintf("run the command of %s by hand to see what it says", key)
}

// InstallHint returns advice on how to install a missing program.
func InstallHint(program string) string {
	if strings.Contains(program, "/") {
		return "install it, or correct its path " + catalog.Quote(program)
	}
	switch program {
	case "npx", "npm", "node":
		return "install Node.js 20 or newer: apt-get install nodejs npm"
	case "uvx", "uv":
		return "install uv, which brings uvx"
	}
	return "install it, or write its full path as `command`"
}

// Notices returns the current problems of the servers that callers of a profile see. It is safe for
// concurrent use.
func (s *Servers) Notices(profile string) []Notice { return s.catalog.Notices(profile) }
