package kernel

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
)

// ErrNoFile is returned if the actor cannot access a file: it does not exist, it belongs to another
// agent, or its name is invalid.
var ErrNoFile = errors.New("there is no such file")

// AgentFiles summarizes an agent's files in the vfs.
type AgentFiles struct {
	Agent  string   `json:"agent_id"`
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Memory string   `json:"mem"`    // the address of the list of its files
	Policy []string `json:"policy"` // the addresses of its policy files
}

// Root is the list of the agents whose files an actor may see.
type Root struct {
	Agents []AgentFiles `json:"agents"`
	More   bool         `json:"more"` // there are more agents
}

// maxRoot is the maximum number of agents in the root list.
const maxRoot = 100

// Root lists the agents that an actor may act as, with a summary of their files.
func (s *Service) Root(ctx context.Context, a Actor) (Root, error) {
	list, err := s.ownAgents(ctx, a)
	if err != nil {
		return Root{}, err
	}
	root := Root{Agents: []AgentFiles{}, More: len(list) > maxRoot}
	for _, agent := range list[:min(len(list), maxRoot)] {
		of := AgentFiles{Agent: agent.ID, Memory: "vfs://" + agent.ID + "/mem/"}
		if of.Files, of.Bytes, err = s.opts.Files.Usage(ctx, agent.ID); err != nil {
			return Root{}, err
		}
		for _, file := range s.policyFiles(agent) {
			of.Policy = append(of.Policy, "vfs://"+agent.ID+"/policy/"+file.Name)
		}
		root.Agents = append(root.Agents, of)
	}
	return root, nil
}

func (s *Service) ownAgents(ctx context.Context, a Actor) ([]agents.Agent, error) {
	only := agents.SelectFor(a.Caller)
	switch {
	case a.Kind == caller.Agent:
		agent, err := s.agent(ctx, a, a.Principal)
		return []agents.Agent{agent}, err
	case a.Kind == caller.Local:
		only.Owner = ""
	case a.Kind != caller.User || !a.Has(caller.ScopeAgents):
		return nil, nil
	}
	return s.opts.Agents.List(ctx, only, "", maxRoot+1)
}

// ListFiles lists the working memory of an agent, or one directory of it.
func (s *Service) ListFiles(ctx context.Context, a Actor, agentID, directory string) ([]vfs.File, error) {
	agent, err := s.agent(ctx, a, agentID)
	if err != nil {
		return nil, noFile(err)
	}
	files, err := s.opts.Files.List(ctx, agent.ID, directory, "", maxListed)
	return files, noFile(err)
}

// ReadFile returns a file of an agent's working memory, or ErrNoFile.
func (s *Service) ReadFile(ctx context.Context, a Actor, agentID, path string) ([]byte, error) {
	agent, err := s.agent(ctx, a, agentID)
	if err != nil {
		return nil, noFile(err)
	}
	content, err := s.opts.Files.Read(ctx, agent.ID, path)
	return content, noFile(err)
}

// PolicyFile returns a file with the settings of an agent: the current rules, or its registration.
// These files cannot be written through the kernel.
func (s *Service) PolicyFile(ctx context.Context, a Actor, agentID, name string) ([]byte, error) {
	agent, err := s.agent(ctx, a, agentID)
	if err != nil {
		return nil, noFile(err)
	}
	for _, file := range s.policyFiles(agent) {
		if file.Name == name {
			return file.Source, nil
		}
	}
	return nil, ErrNoFile
}

// PolicyFileNames returns the names of the policy files.
func (s *Service) PolicyFileNames(ctx context.Context, a Actor, agentID string) ([]string, error) {
	agent, err := s.agent(ctx, a, agentID)
	if err != nil {
		return nil, noFile(err)
	}
	names := []string{}
	for _, file := range s.policyFiles(agent) {
		names = append(names, file.Name)
	}
	return names, nil
}

func (s *Service) policyFiles(agent agents.Agent) []policies.File {
	registration, err := json.MarshalIndent(struct {
		Type        agents.Type        `json:"type"`
		Trust       int                `json:"trust_level"`
		Status      agents.Status      `json:"status"`
		Permissions agents.Permissions `json:"permissions"`
	}{agent.Type, agent.Trust, agent.Status, agent.Permissions}, "", "  ")
	if err != nil { // never happens: all values came from JSON
		registration = []byte("{}")
	}
	return append([]policies.File{policies.Agents(), policies.Kernel(),
		{Name: "registration.json", Source: registration}}, s.opts.PolicyFiles...)
}

// noFile replaces the reasons why the actor cannot access a file with ErrNoFile. It returns other
// errors unchanged.
func noFile(err error) error {
	var path *vfs.PathError
	var no *Refusal
	if errors.As(err, &path) || errors.As(err, &no) || errors.Is(err, vfs.ErrNotFound) {
		return ErrNoFile
	}
	return err
}

// Unknown returns a sentence that names the unknown policies, or an empty string if all are known.
func (s *Service) Unknown(policies []string) string { return s.opts.Policies.Unknown(policies) }
