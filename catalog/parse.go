package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits on one server's list of tools. Real lists are far below: the largest published
// definition we know has 82 KB, the longest list 235 tools.
const (
	maxNameLength     = 128     // characters; MCP 2025-11-25, Server Features / Tools / Tool Names
	maxDefinitionSize = 1 << 20 // bytes of one definition, icons included
	maxDepth          = 64      // nesting of one definition
	maxTools          = 10_000  // tools of one server
)

// ParseTool parses one item of a server's tools/list answer, which is untrusted. The error
// is a sentence about the tool. On error the caller should skip the tool.
func ParseTool(serverID string, raw json.RawMessage) (Tool, error) {
	fields, err := definitionFields(raw)
	if err != nil {
		return Tool{}, err
	}
	tool := Tool{ServerID: serverID, Raw: bytes.Clone(raw), Digest: canon.Digest(raw)}
	if tool.Name, err = toolName(fields["name"]); err != nil {
		return Tool{}, err
	}
	if tool.Title, err = optionalText("title", fields["title"]); err != nil {
		return Tool{}, err
	}
	if tool.Description, err = optionalText("description", fields["description"]); err != nil {
		return Tool{}, err
	}
	if tool.InputSchema, err = inputSchema(fields["inputSchema"]); err != nil {
		return Tool{}, err
	}
	if tool.OutputSchema, err = outputSchema(fields["outputSchema"]); err != nil {
		return Tool{}, err
	}
	tool.Annotations = parseAnnotations(fields["annotations"])
	tool.UI, err = parseUI(fields["_meta"])
	return tool, err
}

// definitionFields returns the members of a definition, which is untrusted.
func definitionFields(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) > maxDefinitionSize {
		return nil, fmt.Errorf("the definition has %d bytes, more than %d", len(raw), maxDefinitionSize)
	}
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("the definition is not UTF-8")
	}
	if kindOf(raw) != kindObject {
		return nil, fmt.Errorf("the definition is %s, not an object", kindOf(raw))
	}
	if err := checkShape(raw); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := strictjson.UnmarshalOpen(raw, &fields); err != nil {
		return nil, fmt.Errorf("the definition is not JSON: %w", err)
	}
	return fields, nil
}

// ParseTools parses all items of a server's list and keeps their order. It skips invalid
// items and returns one warning sentence for each. A name that occurs twice with the same
// definition counts once. With different definitions it is skipped, because it is unknown
// which of them the server would run.
func ParseTools(serverID string, items []json.RawMessage) (tools []Tool, warnings []string) {
	if len(items) > maxTools {
		warnings = append(warnings, fmt.Sprintf("of %d tools only the first %d are used", len(items), maxTools))
		items = items[:maxTools]
	}
	at := make(map[string]int, len(items))
	var ambiguous []string
	for i, raw := range items {
		tool, err := ParseTool(serverID, raw)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s is left out: %v", describeItem(i, raw), err))
			continue
		}
		if tool.UI.Problem != "" {
			warnings = append(warnings, fmt.Sprintf("the app of tool %q is not used: %s", tool.Name, tool.UI.Problem))
		}
		first, twice := at[tool.Name]
		switch {
		case !twice:
			at[tool.Name] = len(tools)
			tools = append(tools, tool)
		case tools[first].Digest != tool.Digest && !slices.Contains(ambiguous, tool.Name):
			ambiguous = append(ambiguous, tool.Name)
		}
	}
	for _, name := range ambiguous {
		warnings = append(warnings, fmt.Sprintf("tool %q is left out: it is listed twice with different definitions",
			name))
	}
	tools = slices.DeleteFunc(tools, func(t Tool) bool { return slices.Contains(ambiguous, t.Name) })
	return tools, warnings
}

// describeItem names a refused item by its name when it has a printable one,
// by its place in the list otherwise.
func describeItem(i int, raw json.RawMessage) string {
	var item struct {
		Name string `json:"name"`
	}
	if strictjson.UnmarshalOpen(raw, &item) == nil && item.Name != "" {
		return fmt.Sprintf("tool %s", Quote(item.Name))
	}
	return fmt.Sprintf("item %d of the tool list", i+1)
}

// toolName checks the protocol's identifier: 1 to 128 of A-Z a-z 0-9 _ - .
// (MCP 2025-11-25, Server Features / Tools / Tool Names).
func toolName(raw json.RawMessage) (string, error) {
	if kindOf(raw) != kindString {
		return "", fmt.Errorf("name is %s, not text", kindOf(raw))
	}
	var name string
	if err := strictjson.UnmarshalOpen(raw, &name); err != nil {
		return "", fmt.Errorf("name is not text: %w", err)
	}
	if name == "" {
		return "", fmt.Errorf("name is empty")
	}
	if n := utf8.RuneCountInString(name); n > maxNameLength {
		return "", fmt.Errorf("name has %d characters, more than %d", n, maxNameLength)
	}
	for _, c := range name {
		if !isNameCharacter(c) {
			return "", fmt.Errorf("name contains %+q; allowed are _, -, ., letters and digits", c)
		}
	}
	return name, nil
}

func optionalText(field string, raw json.RawMessage) (string, error) {
	switch kindOf(raw) {
	case kindMissing, kindNull:
		return "", nil
	case kindString:
		var text string
		if err := strictjson.UnmarshalOpen(raw, &text); err != nil {
			return "", fmt.Errorf("%s is not text: %w", field, err)
		}
		return text, nil
	default:
		return "", fmt.Errorf("%s is %s, not text", field, kindOf(raw))
	}
}

// inputSchema checks that arguments can be an object at all: tools/call has no
// other shape for them.
func inputSchema(raw json.RawMessage) (json.RawMessage, error) {
	if kindOf(raw) != kindObject {
		return nil, fmt.Errorf("inputSchema is %s, not an object", kindOf(raw))
	}
	var schema map[string]json.RawMessage // not a struct: its keys would match in any case
	if err := strictjson.UnmarshalOpen(raw, &schema); err != nil {
		return nil, fmt.Errorf("inputSchema is not JSON: %w", err)
	}
	declared, ok := schema["type"]
	if !ok {
		return bytes.Clone(raw), nil
	}
	var one string
	if strictjson.UnmarshalOpen(declared, &one) == nil && one == "object" {
		return bytes.Clone(raw), nil
	}
	var many []string
	if strictjson.UnmarshalOpen(declared, &many) == nil && slices.Contains(many, "object") {
		return bytes.Clone(raw), nil
	}
	return nil, fmt.Errorf("inputSchema has another type than object, so no arguments can fit")
}

func outputSchema(raw json.RawMessage) (json.RawMessage, error) {
	switch kindOf(raw) {
	case kindMissing, kindNull:
		return nil, nil
	case kindObject:
		return bytes.Clone(raw), nil
	default:
		return nil, fmt.Errorf("outputSchema is %s, not an object", kindOf(raw))
	}
}

// parseAnnotations keeps each hint of the right type and drops the rest: a
// missing hint is the cautious reading (MCP 2025-11-25, ToolAnnotations:
// destructive and open-world by default).
func parseAnnotations(raw json.RawMessage) Annotations {
	var fields map[string]json.RawMessage
	if strictjson.UnmarshalOpen(raw, &fields) != nil {
		return Annotations{}
	}
	hint := func(key string) *bool {
		var b *bool
		if strictjson.UnmarshalOpen(fields[key], &b) != nil {
			return nil
		}
		return b
	}
	title, err := optionalText("title", fields["title"])
	if err != nil {
		title = ""
	}
	return Annotations{
		Title:           title,
		ReadOnlyHint:    hint("readOnlyHint"),
		DestructiveHint: hint("destructiveHint"),
		IdempotentHint:  hint("idempotentHint"),
		OpenWorldHint:   hint("openWorldHint"),
	}
}
