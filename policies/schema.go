package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// maxTypeDepth is how deep records in arguments are described.
const maxTypeDepth = 5

// CedarSchema returns the Cedar schema of everything that policies can be about
// with these servers, in its human-readable form, for editors and for other
// tools of Cedar. An argument whose JSON Schema has not exactly one type in Cedar is left
// out.
func CedarSchema(servers []catalog.Server) []byte {
	w := newWorld(servers)
	tools := make([]*toolShape, 0, len(w.tools))
	for _, id := range slices.Sorted(maps.Keys(w.tools)) {
		tools = append(tools, w.tools[id])
	}
	return []byte(schemaText(tools))
}

// schemaHead describes what policies see beside the arguments: see translate.go.
const schemaHead = `entity Group;
entity User in [Group] = {"name": String, "groups": Set<String>, "claims": {}};
entity Server = {"id": String, "trusted": Bool};
entity Tool in [Server] = {
  "server": String, "name": String, "risk": String,
  "allowed": Bool, "denied": Bool, "flagged": Bool,
  "claims": {"readOnly": Bool, "destructive": Bool, "idempotent": Bool, "openWorld": Bool},
};
type Session = {"calls": Long, "runCalls": Long, "servers": Set<String>};
action "call";
`

func schemaText(tools []*toolShape) string {
	var b strings.Builder
	b.WriteString(schemaHead + connectSchema + readSchema)
	for _, tool := range tools {
		input, ok := cedarType(tool.input, maxTypeDepth)
		if !ok || !strings.HasPrefix(input, "{") {
			input = "{}"
		}
		fmt.Fprintf(&b, "action %s in [\"call\"] appliesTo {\n  principal: [User], resource: [Tool],\n  context: "+
			"{\"input\": %s, \"paths\": %s, \"session\": Session, \"elicits\": Bool},\n};\n",
			cedarString(tool.id), input, input)
	}
	return b.String()
}

// cedarString writes a text as Cedar does.
func cedarString(s string) string {
	return `"` + strings.ReplaceAll(visible.Text(s), `"`, `\"`) + `"`
}

// cedarType returns the Cedar type for a JSON Schema, if one exists.
func cedarType(node any, depth int) (string, bool) {
	object, ok := node.(map[string]any)
	if !ok || depth == 0 {
		return "", false
	}
	switch object["type"] {
	case "string":
		return "String", true
	case "boolean":
		return "Bool", true
	case "integer":
		return "Long", true
	case "number":
		return "decimal", true
	case "array":
		element, ok := cedarType(object["items"], depth-1)
		return "Set<" + element + ">", ok
	case "object":
		return cedarRecord(object, depth)
	}
	return "", false
}

func cedarRecord(object map[string]any, depth int) (string, bool) {
	members, _ := object["properties"].(map[string]any)
	required, _ := object["required"].([]any)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		member, ok := cedarType(members[name], depth-1)
		if !ok {
			continue
		}
		optional := "?"
		if slices.Contains(required, any(name)) {
			optional = ""
		}
		parts = append(parts, cedarString(name)+optional+": "+member)
	}
	return "{" + strings.Join(parts, ", ") + "}", true
}
