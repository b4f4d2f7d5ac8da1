package rules

import (
	"strings"

	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// Declared returns the tool with an ID ("server/tool"), or all tools with a name on any server. An
// announced action of this type can be a call of them.
func (r *Rules) Declared(name string) []risk.Declared {
	snapshot := r.opts.Servers.Catalog().Snapshot()
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return r.appendDeclared(nil, snapshot, server, tool)
	}
	var all []risk.Declared
	for _, server := range snapshot.Servers() {
		all = r.appendDeclared(all, snapshot, server.ID, name)
	}
	return all
}

func (r *Rules) appendDeclared(all []risk.Declared, snapshot *catalog.Snapshot, server,
	name string) []risk.Declared {
	tool, ok := snapshot.Tool(server, name)
	if !ok {
		return all
	}
	settings, err := r.settingsOf(tool)
	if err != nil {
		return append(all, risk.Declared{Schema: tool.InputSchema})
	}
	return append(all, risk.Declared{Risk: policies.EffectiveRisk(tool, settings), Schema: tool.InputSchema,
		SQL: settings.SQL})
}

// RiskOf returns the risk of a tool, from the operator's configuration in force and the tool's
// definition.
func (r *Rules) RiskOf(tool catalog.Tool) policies.Risk {
	settings, err := r.settingsOf(tool)
	if err != nil {
		return policies.RiskUnknown
	}
	return policies.EffectiveRisk(tool, settings)
}

// settingsOf returns the operator's settings of a tool.
func (r *Rules) settingsOf(tool catalog.Tool) (policies.Settings, error) {
	operator, err := operatorSettings(r.Config())
	return operator.Settings(tool.ServerID, tool.Name, nil), err
}
