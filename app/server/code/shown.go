package code

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// ShownTools returns the definitions of the tools of this package as a model sees them (name,
// description and inputSchema of each), and the instructions.
func ShownTools(serverIDs []string) (definitions []string, guide string, err error) {
	var tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := strictjson.UnmarshalOpen(toolsJSON, &tools); err != nil {
		return nil, "", err
	}
	for _, tool := range tools {
		if tool.Name == nameCallTool {
			continue
		}
		if tool.Name == nameSearchTools {
			tool.Description += serversLine(serverIDs)
		}
		line, err := ShownTool(tool.Name, tool.Description, tool.InputSchema)
		if err != nil {
			return nil, "", err
		}
		definitions = append(definitions, line)
	}
	return definitions, instructions(serverIDs), nil
}

// ShownTool returns a definition in the form in which a host passes it to a model.
func ShownTool(name, description string, schema json.RawMessage) (string, error) {
	line, err := server.Encode(map[string]any{"name": name, "description": description, "inputSchema": schema})
	return string(line), err
}

// ShownSearch returns the text of an answer of search_tools.
func ShownSearch(snapshot *catalog.Snapshot, query catalog.Query) (string, error) {
	res, err := structured(snapshot.Find(query))
	return textsOf(res), err
}

// ShownDefinition returns the text of an answer of get_tool_definition.
func ShownDefinition(snapshot *catalog.Snapshot, serverID, name string) (string, error) {
	definition, err := snapshot.Definition(serverID, name)
	if err != nil {
		return "", err
	}
	res, err := structured(definition.JSON)
	return textsOf(res), err
}

// ShownRun returns the text of an answer of run_code for a program with the result data.
func ShownRun(runID string, data json.RawMessage) string {
	envelope := orchestrator.Envelope{RunID: runID, Result: orchestrator.Result{OK: true, Data: data}}
	res := &mcp.CallToolResult{}
	addResult(res, envelope)
	addText(res, runLine(envelope))
	return textsOf(res)
}

func textsOf(res *mcp.CallToolResult) string {
	if res == nil {
		return ""
	}
	var texts []string
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}
