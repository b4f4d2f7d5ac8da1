package orchestrator

import (
	"encoding/json"
	"errors"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// SearchAnswer is what a search for tools finds, or why it was refused.
type SearchAnswer struct {
	catalog.Answer
	Error *broker.Error `json:"error,omitempty"`
}

// refusedSearch answers a search with an error.
func refusedSearch(e *broker.Error) SearchAnswer {
	return SearchAnswer{catalog.Answer{Tools: []catalog.Entry{}}, e}
}

// DefinitionAnswer is one tool's whole definition, or an error.
type DefinitionAnswer struct {
	Definition json.RawMessage `json:"definition,omitempty"`
	Error      *broker.Error   `json:"error,omitempty"`
}

// defaultLimit is the default number of tools that a search returns.
const defaultLimit = 20

// Search looks for tools in the snapshot; detail is as callers write it.
func Search(snapshot *catalog.Snapshot, text, serverID, detail string, limit int) SearchAnswer {
	if limit <= 0 {
		limit = defaultLimit
	}
	level, err := catalog.ParseDetail(detail)
	if err != nil {
		return refusedSearch(&broker.Error{Type: errortype.Validation, Message: err.Error()})
	}
	answer := SearchAnswer{Answer: snapshot.Find(catalog.Query{Text: text, ServerID: serverID, Detail: level,
		Limit: limit})}
	if _, known := snapshot.Server(serverID); serverID != "" && !known {
		answer.Error = &broker.Error{Type: errortype.UnknownTool,
			Message: "there is no server " + catalog.Quote(serverID)}
	}
	return answer
}

// Definition returns one tool's definition from the snapshot.
func Definition(snapshot *catalog.Snapshot, serverID, name string) DefinitionAnswer {
	definition, err := snapshot.Definition(serverID, name)
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &withheld):
		return DefinitionAnswer{Error: &broker.Error{Type: errortype.PolicyDenied, Message: err.Error()}}
	case err != nil:
		return DefinitionAnswer{Error: &broker.Error{Type: errortype.UnknownTool, Message: err.Error()}}
	}
	return DefinitionAnswer{Definition: definition.JSON}
}
