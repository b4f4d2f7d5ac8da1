package upstreams

import (
	"slices"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
)

// withhold replaces each tool whose definition changed since it was first seen by a placeholder,
// because no operator has seen the new definition.
func withhold(servers []catalog.Server, changed []pins.Change) []catalog.Server {
	isChanged := map[pins.Ref]bool{}
	for _, c := range changed {
		isChanged[pins.Ref{ServerID: c.ServerID, ToolName: c.ToolName}] = true
	}
	kept := slices.Clone(servers)
	for i := range kept {
		kept[i].Tools, kept[i].Features = slices.Clone(kept[i].Tools), slices.Clone(kept[i].Features)
		for _, list := range [][]catalog.Tool{kept[i].Tools, kept[i].Features} {
			for j, tool := range list {
				if isChanged[pins.Ref{ServerID: tool.ServerID, ToolName: tool.Name}] {
					list[j] = catalog.Withhold(tool)
				}
			}
		}
	}
	return kept
}
