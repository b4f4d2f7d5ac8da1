// Package kernel opens the kernel that a configuration describes: its models, named policies and actions. An action is
// carried out as a run.
package kernel

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/engines"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/models"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
)

// Parts are what the kernel is made of. All are required.
type Parts struct {
	Config         *config.Config
	Admission      *admission.Service
	Agents         *access.Agents
	Log            *audit.Log
	AuditDirectory string // of Log
	Runs           *runs.Registry
	Servers        *upstreams.Servers
	Rules          *rules.Rules
	Verifier       *engines.Verifier
	Redactors      *upstreams.Redactors
}

// Open opens the kernel of a configuration, with the trust service of agents. The caller must keep the parts open.
func Open(ctx context.Context, p Parts) (*kernel.Service, *iatp.Service, error) {
	trust, err := p.Agents.Trust()
	if err != nil {
		return nil, nil, setup.Advise(err)
	}
	k, err := open(ctx, p, trust)
	return k, trust, setup.Advise(err)
}

func open(ctx context.Context, p Parts, trust *iatp.Service) (*kernel.Service, error) {
	c := p.Config.Kernel
	asked, err := openModels(ctx, p.Config)
	if err != nil {
		return nil, err
	}
	for _, key := range asked.keys {
		p.Redactors.All.Hold(key)
	}
	files, err := namedPolicyFiles(c)
	if err != nil {
		return nil, err
	}
	named, err := policies.LoadNamed(files...)
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("kernel.policies: %w", err),
			Advice: "docs/kernel.md shows what a named policy looks like"}
	}
	stored, err := p.Agents.Files(vfs.Limits{Files: c.Files.Files, FileBytes: c.Files.FileBytes, Bytes: c.Files.Bytes})
	if err != nil {
		return nil, err
	}
	actions, err := kernelActions(p.Config)
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Options{
		Admission: p.Admission, Agents: p.Agents, Log: p.Log, AuditDirectory: p.AuditDirectory, Trust: trust,
		Files:  stored,
		Models: asked.Models, Policies: named, PolicyFiles: files, Actions: actions, Dispatcher: dispatcher{p},
		Verifier: p.Verifier,
		Redactor: p.Redactors.Definitions,
	})
}

// kernelActions returns the configured actions. It returns an error if an action names a server
// that is not configured.
func kernelActions(c *config.Config) (map[string]kernel.Action, error) {
	var ids []string
	for _, server := range c.Servers {
		ids = append(ids, server.ID)
	}
	actions := map[string]kernel.Action{}
	for _, name := range slices.Sorted(maps.Keys(c.Kernel.Actions)) {
		action := c.Kernel.Actions[name]
		if !slices.Contains(ids, action.Server) {
			return nil, &setup.Error{Err: fmt.Errorf("kernel.actions.%s: there is no server %q%s", name, action.Server,
				nearest.Hint(action.Server, ids)), Advice: "name one under mcpServers"}
		}
		actions[name] = kernel.Action{Server: action.Server, Tool: action.Tool, SQL: action.SQL}
	}
	return actions, nil
}

// askable are the configured models, with the keys that were looked up.
type askable struct {
	*models.Models
	keys []string
}

func openModels(ctx context.Context, c *config.Config) (askable, error) {
	var list []models.Model
	var keys []string
	for _, m := range c.Kernel.Models {
		key, err := credentials.Lookup(ctx, c, "models."+m.Name, m.Key)
		if err != nil {
			return askable{}, err
		}
		if key.Reveal() != "" {
			credentials.Printed().Hold(key.Reveal())
			keys = append(keys, key.Reveal())
		}
		list = append(list, models.Model{Name: m.Name, URL: m.URL, Model: m.Model, Key: key, Timeout: m.Timeout})
	}
	known, err := models.New(list)
	if err != nil {
		return askable{}, &setup.Error{Err: fmt.Errorf("models: %w", err),
			Advice: "docs/configuration.md lists its keys"}
	}
	return askable{known, keys}, nil
}

// namedPolicyFiles reads the operator's named policies. Agents see the last element of their paths
// as names.
func namedPolicyFiles(c config.Kernel) ([]policies.File, error) {
	var files []policies.File
	seen := map[string]bool{"kernel.cedar": true, "agents.cedar": true, "registration.json": true}
	for _, path := range c.Policies {
		source, err := rules.ReadPolicy(path)
		if err != nil {
			return nil, fmt.Errorf("reading kernel.policies: %w", err)
		}
		name := filepath.Base(path)
		if seen[name] {
			return nil, &setup.Error{Err: fmt.Errorf("kernel.policies: there are two files named %q", name),
				Advice: "give each file a different name"}
		}
		seen[name] = true
		files = append(files, policies.File{Name: name, Source: source})
	}
	return files, nil
}
