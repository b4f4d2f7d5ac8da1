package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// withheldText describes a withheld tool in place of its description.
const withheldText = "Withheld by Airlock: its definition is new or changed since it was last looked at, and calls " +
	"are refused. An operator has to look at the change with `airlock tools diff`."

// Withhold returns a replacement for a tool whose changed definition was not reviewed. It
// has the tool's name and the reason, and no text of the new definition.
// Snapshot.Lookup and Definition return a *WithheldError for it.
func Withhold(tool Tool) Tool {
	description, _ := json.Marshal(withheldText) // a text always has a JSON form
	name, _ := json.Marshal(tool.Name)
	raw := fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":{"type":"object"}}`, name, description)
	return Tool{
		ServerID: tool.ServerID, Name: tool.Name, Kind: tool.Kind, Description: withheldText, Withheld: true,
		InputSchema: json.RawMessage(`{"type":"object"}`), Raw: raw, Digest: canon.Digest(raw),
	}
}

// WithheldError reports that a tool cannot be used until an operator has reviewed its
// new or changed definition.
type WithheldError struct{ ServerID, ToolName string }

// Error is one sentence.
func (e *WithheldError) Error() string {
	return fmt.Sprintf("tool %s of server %s is withheld because its definition is new or changed; an operator must "+
		"run `airlock tools diff`", Quote(e.ToolName), Quote(e.ServerID))
}

// Hint returns the command to type.
func (e *WithheldError) Hint() string { return "airlock tools diff" }
