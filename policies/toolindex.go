package policies

import (
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// world contains the servers and tools that policies can refer to.
type world struct {
	servers []string
	missing []string              // servers whose tools are not known
	tools   map[string]*toolShape // by ToolID
}

// toolShape describes a tool and its arguments.
type toolShape struct {
	id, server, name string
	input            any // its inputSchema, decoded; nil when it cannot be
}

func newWorld(servers []catalog.Server) *world {
	w := &world{tools: map[string]*toolShape{}}
	for _, server := range servers {
		w.servers = append(w.servers, server.ID)
		if server.Problem != "" {
			w.missing = append(w.missing, server.ID)
		}
		for _, tool := range server.Tools {
			shape := &toolShape{id: ToolID(server.ID, tool.Name), server: server.ID, name: tool.Name}
			if input, err := strictjson.Value(tool.InputSchema); err == nil {
				shape.input = input
			}
			w.tools[shape.id] = shape
		}
	}
	return w
}

// hasTool reports whether a tool exists, or may exist on a server that is missing.
func (w *world) hasTool(id string) bool {
	if _, ok := w.tools[id]; ok {
		return true
	}
	return slices.ContainsFunc(w.missing, func(server string) bool { return strings.HasPrefix(id, ToolID(server, "")) })
}

// inScope returns the tools that a policy's head can match.
func (w *world) inScope(s scope) []*toolShape {
	var tools []*toolShape
	for _, id := range slices.Sorted(maps.Keys(w.tools)) {
		if tool := w.tools[id]; s.matches(tool) {
			tools = append(tools, tool)
		}
	}
	for _, server := range w.missing { // any tool of a server that is missing
		if s.matchesMissing(server) {
			tools = append(tools, &toolShape{server: server})
		}
	}
	return tools
}

// matchesMissing reports whether a policy's head can match a tool of a server whose
// tools are unknown.
func (s scope) matchesMissing(server string) bool {
	prefix := ToolID(server, "")
	if s.actions != nil && !slices.ContainsFunc(s.actions, func(a cedar.EntityUID) bool {
		return strings.HasPrefix(string(a.ID), prefix) || a.ID == anyTool && !s.exactly
	}) {
		return false
	}
	return s.resource == nil || string(s.resource.ID) == server && s.resource.Type == typeServer ||
		s.resource.Type == typeTool && strings.HasPrefix(string(s.resource.ID), prefix)
}

func (s scope) matches(tool *toolShape) bool {
	if s.actions != nil && !slices.ContainsFunc(s.actions, func(a cedar.EntityUID) bool {
		return string(a.ID) == tool.id || a.ID == anyTool && !s.exactly
	}) {
		return false
	}
	if s.resource == nil {
		return true
	}
	switch s.resource.Type {
	case typeTool:
		return string(s.resource.ID) == tool.id
	case typeServer:
		return string(s.resource.ID) == tool.server
	}
	return false
}

// attributes returns the members of the values that policies see, except the arguments.
func attributes() map[string][]string {
	return map[string][]string{
		"principal":       {"name", "groups", "claims"},
		"resource":        {"server", "name", "risk", "allowed", "denied", "flagged", "claims"},
		"resource.claims": {"readOnly", "destructive", "idempotent", "openWorld"},
		"context":         {"input", "paths", "session", "elicits"},
		"context.session": {"calls", "runCalls", "servers"},
	}
}

func knownAttribute(path []string) (known []string, ok bool) {
	known = attributes()[strings.Join(path[:len(path)-1], ".")]
	return known, slices.Contains(known, path[len(path)-1])
}

// knownArgument reports whether any of the tools may take the argument at path, and returns
// the names that they take instead. Without tools it returns true. A tool that lists no
// arguments may take any, but most such tools take none: if another tool has a similar name,
// the argument is considered misspelt.
func knownArgument(path []string, tools []*toolShape) (known []string, ok bool) {
	if len(path) == 0 || len(tools) == 0 {
		return nil, true
	}
	names, silent := map[string]bool{}, false
	for _, tool := range tools {
		if listsNothing(tool.input) {
			silent = true
			continue
		}
		here, ok := descend(tool.input, path)
		if ok {
			return nil, true
		}
		for _, name := range here {
			names[name] = true
		}
	}
	known = slices.Sorted(maps.Keys(names))
	return known, silent && nearest.Hint(path[len(path)-1], known) == ""
}

// listsNothing reports whether a schema has no information about an object's members.
func listsNothing(input any) bool {
	object, isObject := input.(map[string]any)
	if !isObject {
		return true
	}
	for name := range object {
		if !slices.Contains([]string{"type", "properties", "required", "$schema", "title", "description"}, name) &&
			object[name] != false {
			return false
		}
	}
	members, _ := object["properties"].(map[string]any)
	return len(members) == 0
}

// descend follows a path through a JSON Schema. It is lenient: if a schema does not list its
// members, any member is accepted.
func descend(node any, path []string) (known []string, ok bool) {
	for _, name := range path {
		object, isObject := node.(map[string]any)
		if !isObject {
			return nil, true
		}
		members, _ := object["properties"].(map[string]any)
		member, listed := members[name]
		if !listed {
			return slices.Sorted(maps.Keys(members)), isOpen(object, members)
		}
		node = member
	}
	return nil, true
}

// isOpen reports whether an object's schema explicitly permits members that properties does
// not list. A schema that merely does not forbid them is not open.
func isOpen(object map[string]any, members map[string]any) bool {
	if len(members) == 0 {
		return true
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties",
		"dependentSchemas"} {
		if _, ok := object[keyword]; ok {
			return true
		}
	}
	switch additional := object["additionalProperties"].(type) {
	case bool:
		return additional
	case map[string]any:
		return true
	}
	return false
}
