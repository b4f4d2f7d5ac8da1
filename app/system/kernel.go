package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/models"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/runner"
)

// OpenKernel opens the kernel with a system and its agents. The caller must close both later than
// the kernel.
func (s *System) OpenKernel(ctx context.Context, known *access.Agents) (*kernel.Service, *iatp.Service, error) {
	trust, err := known.Trust()
	if err != nil {
		return nil, nil, setup.Advise(err)
	}
	k, err := s.openKernel(ctx, known, trust)
	return k, trust, setup.Advise(err)
}

func (s *System) openKernel(ctx context.Context, known *access.Agents, trust *iatp.Service) (*kernel.Service, error) {
	c := s.config.Kernel
	asked, err := openModels(ctx, s.config)
	if err != nil {
		return nil, err
	}
	for _, key := range asked.keys {
		s.opts.redactors.All.Hold(key)
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
	stored, err := known.Files(vfs.Limits{Files: c.Files.Files, FileBytes: c.Files.FileBytes, Bytes: c.Files.Bytes})
	if err != nil {
		return nil, err
	}
	actions, err := kernelActions(s.config)
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Options{
		Admission: s.admission, Agents: known, Log: s.log, AuditDirectory: s.directories.Audit, Trust: trust,
		Files:  stored,
		Models: asked.Models, Policies: named, PolicyFiles: files, Actions: actions, Dispatcher: dispatcher{s},
		Verifier: s.Verify(),
		Redactor: s.opts.redactors.Definitions,
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
	kept := credentials.Store(c)
	var list []models.Model
	var keys []string
	for _, m := range c.Kernel.Models {
		key := m.Key
		if secrets.IsReference(key.Reveal()) {
			found, err := kept.Lookup(ctx, key.Reveal())
			if err != nil {
				return askable{}, &setup.Error{Err: fmt.Errorf("the credential of models.%s: %w", m.Name, err),
					Advice: "docs/configuration.md describes where credentials can be kept"}
			}
			key = found
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

// dispatcher executes the kernel's actions as runs of the registry, with the policies, approvals,
// limits and records of every run.
type dispatcher struct{ system *System }

var _ kernel.Dispatcher = dispatcher{}

// Call executes one tool call as a run.
func (d dispatcher) Call(ctx context.Context, who caller.Caller, serverID, tool string,
	arguments json.RawMessage) (kernel.Output, error) {
	if err := d.system.Await(ctx, serverID); err != nil { // it may still be starting
		return kernel.Output{}, err
	}
	req, err := orchestrator.CallRequest(orchestrator.ToolCall{ServerID: serverID, Name: tool, Arguments: arguments})
	if err != nil {
		return refusedRun(err)
	}
	return d.run(ctx, who, req)
}

// Run executes a program as a run.
func (d dispatcher) Run(ctx context.Context, who caller.Caller, language, code string) (kernel.Output, error) {
	if language == "javascript" {
		language = "node"
	}
	return d.run(ctx, who, orchestrator.Request{Language: language, Code: []byte(code)})
}

func (d dispatcher) run(ctx context.Context, who caller.Caller, req orchestrator.Request) (kernel.Output, error) {
	req.Caller, req.PreviewLarge = who, true
	run, err := d.system.runs.Start(ctx, req)
	if err != nil {
		return refusedRun(err)
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		return refusedRun(err)
	}
	out := kernel.Output{RunID: run.ID()}
	if failed := outcome.Envelope.Result.Error; failed != nil {
		out.Failure = &kernel.Failure{Type: failed.Type, Message: failed.Message, Retryable: failed.Retryable}
		return out, nil
	}
	out.Data = outcome.Envelope.Result.Data
	return out, nil
}

// refusedRun returns the failure of a request that did not become a run if the caller can correct
// or repeat it. Otherwise it returns err.
func refusedRun(err error) (kernel.Output, error) {
	var advised interface{ Hint() string }
	switch {
	case errors.Is(err, runner.ErrBusy), errors.Is(err, broker.ErrSessions):
		return kernel.Output{Failure: &kernel.Failure{Type: "RateLimit",
			Message: "all sandboxes are in use: try it again later", Retryable: true}}, nil
	case errors.As(err, &advised):
		return kernel.Output{Failure: &kernel.Failure{Type: "ValidationError",
			Message: err.Error() + ": " + advised.Hint()}}, nil
	}
	return kernel.Output{}, err
}

// Risk returns the risk of a tool from the operator's settings and the tool's definition.
func (d dispatcher) Risk(who caller.Caller, serverID, tool string) (policies.Risk, bool) {
	defined, ok := d.system.Snapshot(who).Tool(serverID, tool)
	if !ok {
		return policies.RiskUnknown, false
	}
	return d.system.RiskOf(defined), true
}
