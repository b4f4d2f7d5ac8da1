package agents

import (
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/policies"
)

// semantics is what is known of an action type.
type semantics struct {
	risk   policies.ActRisk
	engine string // of permissions.allowed_engines; empty for none
	sql    bool   // its query is SQL, which decides its risk
}

// actionTypes are those that can be decided on. A type that is neither here nor
// among an agent's allowed tools is denied before anything else is looked at.
var actionTypes = map[string]semantics{
	"read_file":     {risk: policies.ActLow},
	"file_read":     {risk: policies.ActLow},
	"file_list":     {risk: policies.ActLow},
	"database_read": {risk: policies.ActLow, engine: "sql", sql: true},
	"read_database": {risk: policies.ActLow, engine: "sql", sql: true},
	"query_data":    {risk: policies.ActLow, engine: "sql", sql: true},
	"execute_sql":   {risk: policies.ActLow, engine: "sql", sql: true},
	"sql_query":     {risk: policies.ActLow, engine: "sql", sql: true},
	"search_web":    {risk: policies.ActLow},
	"log_message":   {risk: policies.ActLow},
	"get_weather":   {risk: policies.ActLow},

	"calculate":        {risk: policies.ActLow, engine: "math"},
	"verify_math":      {risk: policies.ActLow, engine: "math"},
	"verify_logic":     {risk: policies.ActLow, engine: "logic"},
	"verify_sql":       {risk: policies.ActLow, engine: "sql"},
	"verify_code":      {risk: policies.ActLow, engine: "code"},
	"verify_fact":      {risk: policies.ActLow, engine: "fact"},
	"verify_stats":     {risk: policies.ActLow, engine: "stats"},
	"verify_image":     {risk: policies.ActLow, engine: "image"},
	"verify_consensus": {risk: policies.ActLow, engine: "consensus"},

	"send_email": {risk: policies.ActMedium},
	"api_call":   {risk: policies.ActMedium},

	"file_write":     {risk: policies.ActHigh},
	"write_file":     {risk: policies.ActHigh},
	"database_write": {risk: policies.ActHigh, engine: "sql", sql: true},

	"execute_code":    {risk: policies.ActCritical, engine: "code"},
	"file_delete":     {risk: policies.ActCritical},
	"delete_file":     {risk: policies.ActCritical},
	"delete_files":    {risk: policies.ActCritical},
	"delete_database": {risk: policies.ActCritical, engine: "sql"},
	"drop_table":      {risk: policies.ActCritical, engine: "sql"},
	"send_money":      {risk: policies.ActCritical},
	"shutdown_server": {risk: policies.ActCritical},
	"revoke_access":   {risk: policies.ActCritical},
}

// act describes an action of an agent to the rules. known is false where
// nothing is known of its type.
func (a Agent) act(action Action) (act policies.Act, known bool) {
	meaning, known := actionTypes[action.Type]
	if !known && !slices.Contains(a.Permissions.AllowedTools, action.Type) {
		return act, false
	}
	act = policies.Act{
		AgentID: a.ID, Trust: a.Trust, Active: a.Status == Active, Engines: a.Permissions.AllowedEngines,
		Type: action.Type, Risk: meaning.risk, Engine: meaning.engine, Category: policies.ActOther,
		Blocked: slices.Contains(a.Permissions.BlockedTools, action.Type),
	}
	if meaning.sql {
		act.Risk = max(act.Risk, riskOfSQL(action.Query))
	}
	if action.destroys() {
		act.Risk = policies.ActCritical
	}
	if slices.Contains(dangerousTools, action.Type) {
		act.Category = policies.ActDangerous
	} else if a.isSafe(action.Type) {
		act.Category = policies.ActSafe
	}
	return act, true
}

func riskOfSQL(query string) policies.ActRisk {
	if strings.TrimSpace(query) == "" {
		return policies.ActLow // the type says what is done, there is no statement
	}
	switch sqltext.Classify(query) {
	case sqltext.Read:
		return policies.ActLow
	case sqltext.Write:
		return policies.ActHigh
	}
	return policies.ActCritical
}

// destroys says whether a text of the action drops a table or the like,
// whatever its type says.
func (a Action) destroys() bool {
	return sqltext.Destroys(a.Query) || sqltext.Destroys(a.Code) || sqltext.Destroys(a.Target) ||
		slices.ContainsFunc(textsOf(a.Parameters), sqltext.Destroys)
}
