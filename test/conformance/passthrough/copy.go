package passthrough

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// copyAll adds what the server has.
func (m *mirror) copyAll(ctx context.Context) error {
	m.copyTools()
	return errors.Join(m.copyPrompts(ctx), m.copyResources(ctx))
}

// copyTools makes the tools those that the server has now.
func (m *mirror) copyTools() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, server := range m.set.Servers() {
		for _, known := range server.Tools {
			var tool mcp.Tool
			if json.Unmarshal(known.Raw, &tool) != nil {
				continue // the upstream client has checked it
			}
			names = append(names, tool.Name)
			if !slices.Contains(m.tools, tool.Name) {
				m.server.AddTool(&tool, m.callTool)
			}
		}
	}
	m.server.RemoveTools(without(m.tools, names)...)
	m.tools = names
}

// without returns what is in names and not in others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// callTool calls a tool as Airlock's broker does, with the person behind the call. A client
// of MCP 2026-07-28 gets the server's requests for input in the result instead, and sends its
// answers with the next request.
func (m *mirror) callTool(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	via := relayTo(ctx, r.Session, r.Params.GetProgressToken())
	if r.Session.InitializeParams() == nil || r.Session.InitializeParams().ProtocolVersion >= "2026-07-28" {
		return forward(ctx, m, "tools/call", r.Params, via, &mcp.CallToolResult{})
	}
	raw, err := m.set.CallFor(ctx, via, m.id, r.Params.Name, r.Params.Arguments)
	if err != nil {
		var failed *upstream.CallError
		if !errors.As(err, &failed) {
			return nil, err
		}
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: failed.Message}}}, nil
	}
	var result mcp.CallToolResult
	return &result, json.Unmarshal(raw, &result)
}

func (m *mirror) copyPrompts(ctx context.Context) error {
	list, err := forward(ctx, m, "prompts/list", struct{}{}, nil, &mcp.ListPromptsResult{})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, prompt := range list.Prompts {
		names = append(names, prompt.Name)
		if slices.Contains(m.prompts, prompt.Name) {
			continue
		}
		m.server.AddPrompt(prompt, func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return forward(ctx, m, "prompts/get", r.Params, relayTo(ctx, r.Session, nil), &mcp.GetPromptResult{})
		})
	}
	m.server.RemovePrompts(without(m.prompts, names)...)
	m.prompts = names
	return nil
}

func (m *mirror) copyResources(ctx context.Context) error {
	list, err := forward(ctx, m, "resources/list", struct{}{}, nil, &mcp.ListResourcesResult{})
	if err != nil {
		return err
	}
	templates, err := forward(ctx, m, "resources/templates/list", struct{}{}, nil, &mcp.ListResourceTemplatesResult{})
	if err != nil {
		return err
	}
	read := func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return forward(ctx, m, "resources/read", r.Params, relayTo(ctx, r.Session, nil), &mcp.ReadResourceResult{})
	}
	for _, resource := range list.Resources {
		m.server.AddResource(resource, read)
	}
	for _, template := range templates.ResourceTemplates {
		m.server.AddResourceTemplate(template, read)
	}
	return nil
}
