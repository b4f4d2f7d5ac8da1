package risk

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
)

//go:embed actions.json
var actionsSource []byte

// Meaning is the part of an act's description that follows from the name of the action or the tool.
type Meaning struct {
	Risk     policies.Risk
	Engine   string               // that permissions.allowed_engines must name; empty for none
	SQL      bool                 // its query is SQL
	Category policies.ActCategory // its place in the list of tools
}

// UnmarshalJSON reads an entry of actions.json.
func (m *Meaning) UnmarshalJSON(raw []byte) error {
	entry := struct {
		Risk     string               `json:"risk"`
		Engine   string               `json:"engine"`
		SQL      bool                 `json:"sql"`
		Category policies.ActCategory `json:"category"`
	}{Category: policies.ActOther}
	if err := strictjson.UnmarshalOpen(raw, &entry); err != nil {
		return err
	}
	risk, err := policies.ParseLevel(entry.Risk)
	*m = Meaning{risk, entry.Engine, entry.SQL, entry.Category}
	return err
}

// tables are the actions and tools whose names have a meaning.
type tables struct {
	Agents  map[string]Meaning `json:"agents"`  // announced by agents, and tools with these names
	Kernel  map[string]Meaning `json:"kernel"`  // carried out by the kernel itself
	Gateway map[string]Meaning `json:"gateway"` // tools of the gateway
}

var known = sync.OnceValue(func() tables {
	var t tables
	if err := strictjson.UnmarshalOpen(actionsSource, &t); err != nil {
		panic(fmt.Sprintf("admission/risk/actions.json: %v", err)) // the file is embedded in the program
	}
	return t
})

// MeaningOf returns the meaning of an action type or a tool's name. It reports false for a name without a meaning.
func MeaningOf(name string) (Meaning, bool) {
	m, ok := known().Agents[name]
	return m, ok
}

// Engines returns the engines that actions need, sorted: the valid values of permissions.allowed_engines.
func Engines() []string {
	var names []string
	for _, m := range known().Agents {
		if m.Engine != "" {
			names = append(names, m.Engine)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OfKernel returns the risk of an action that the kernel carries out itself.
func OfKernel(action string) (policies.Risk, bool) {
	m, ok := known().Kernel[action]
	return m.Risk, ok
}

// OfGateway returns the risk of a tool of the gateway. It reports false for all other tools.
func OfGateway(tool string) (policies.Risk, bool) {
	m, ok := known().Gateway[tool]
	return m.Risk, ok
}
