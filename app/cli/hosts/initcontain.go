package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	imagesverbs "github.com/airlock-mcp/airlock/app/cli/images"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// propose adds sandboxes to the plan for all servers of the configuration that have none and that can be contained, and
// returns the proposals for all servers without a sandbox.
func (v *Init) propose(plan *hosts.Plan) ([]contained.Proposal, error) {
	if !v.Contain {
		return nil, nil
	}
	draft, remove, err := plan.Draft()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(draft, os.LookupEnv)
	if err := errors.Join(err, remove()); err != nil {
		return nil, unproved(err)
	}
	var proposals []contained.Proposal
	for _, server := range c.Servers {
		if server.Command != "" && server.Settings.Sandbox == nil {
			proposals = append(proposals, contained.Propose(server))
		}
	}
	return proposals, contain(plan, proposals)
}

// contain sets the sandboxes of the plan to the proposals without a problem.
func contain(plan *hosts.Plan, proposals []contained.Proposal) error {
	boxes := map[string]any{}
	for _, p := range proposals {
		if p.Problem == "" {
			boxes[p.Server] = p.Settings()
		}
	}
	return plan.Contain(boxes)
}

// printProposals prints which servers get a sandbox, and for each what its command and variables ask for.
func printProposals(w io.Writer, proposals []contained.Proposal) {
	clean := func(text string) string { return visible.Line(verb.Clean(verb.OneLine(text, 400))) }
	for _, p := range proposals {
		name := visible.Line(verb.OneLine(p.Server, 60))
		if p.Problem != "" {
			fmt.Fprintf(w, "%s keeps your rights: %s\n", name, clean(p.Problem))
			continue
		}
		fmt.Fprintf(w, "%s gets a sandbox, and asks for\n", name)
		line := func(what string, values []string) {
			if len(values) > 0 {
				fmt.Fprintf(w, "      %-10s %s\n", what, clean(strings.Join(values, ", ")))
			}
		}
		line("packages", p.Program.Packages)
		if p.Program.Project != "" {
			line("project", []string{p.Program.Project + " (read-only)"})
		}
		line("variables", p.Variables)
		var mounts, network []string
		for _, m := range p.Mounts {
			mounts = append(mounts, m.Path+" (read-only)")
		}
		for _, host := range p.Network {
			network = append(network, host.String())
		}
		line("mounts", mounts)
		line("network", network)
		if len(network) == 0 {
			fmt.Fprintf(w, "      no network: airlock servers learn %s shows what it connects to\n", visible.Word(name))
		}
		for _, left := range p.Left {
			fmt.Fprintf(w, "      not possible: %s\n", clean(left))
		}
	}
}

// proposalsJSON returns the proposals for --json. It has the names of variables, never their values.
func proposalsJSON(proposals []contained.Proposal) []any {
	list := []any{}
	for _, p := range proposals {
		entry := map[string]any{"name": p.Server, "contained": p.Problem == ""}
		if p.Problem != "" {
			entry["reason"] = p.Problem
		} else {
			entry["packages"], entry["variables"] = append([]string{}, p.Program.Packages...), p.Variables
			entry["sandbox"], entry["not_possible"] = p.Settings(), append([]string{}, p.Left...)
			entry["rules"] = p.Rules()
		}
		list = append(list, entry)
	}
	return list
}

// printRules prints the policies without which the hosts of the configuration are not reached.
func printRules(w io.Writer, proposals []contained.Proposal) {
	var rules strings.Builder
	for _, p := range proposals {
		if p.Problem == "" {
			rules.WriteString(p.Rules())
		}
	}
	if rules.Len() > 0 {
		fmt.Fprintf(w, "No policy permits the hosts above yet. Add these rules to a file of policies:\n\n%s\n",
			rules.String())
	}
}

// buildContained builds the images of the servers that the plan gives a sandbox. A server whose image cannot be built
// keeps the rights of the user, with the reason.
func buildContained(ctx context.Context, s *verb.Streams, plan *hosts.Plan, proposals []contained.Proposal) error {
	for i := range proposals {
		if proposals[i].Problem != "" {
			continue
		}
		err := buildOne(ctx, s, plan, proposals[i].Server)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintf(s.Err, "airlock: %s gets no sandbox: %v\n", verb.OneLine(proposals[i].Server, 60), err)
			proposals[i].Problem = err.Error()
		}
	}
	return contain(plan, proposals)
}

// buildOne builds the image of one server with the plan's configuration, and keeps the lock file of its packages.
func buildOne(ctx context.Context, s *verb.Streams, plan *hosts.Plan, server string) (err error) {
	draft, remove, err := plan.Draft()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	lock, final := (&config.Config{File: draft}).LockFile(), (&config.Config{File: plan.Config}).LockFile()
	if content, err := store.ReadFile(final); err == nil {
		if err := os.WriteFile(lock, content, 0o600); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	build := &imagesverbs.Build{ConfigFlag: verb.ConfigFlag{Config: draft}, Names: []string{server}}
	if err := build.Run(ctx, s); err != nil {
		return errors.Join(err, removeIfExists(lock))
	}
	if err := os.Rename(lock, final); !errors.Is(err, fs.ErrNotExist) { // images.lock names another file
		return err
	}
	return nil
}

func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
