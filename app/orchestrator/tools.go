package orchestrator

import (
	"encoding/json"
	"errors"

	"github.com/airlock-mcp/airlock/catalog"
)

// SearchAnswer is what a search for tools finds, in the form that code and
// models get it.
type SearchAnswer struct {
	Tools   []catalog.Entry         `json:"tools"`
	Missing []catalog.MissingServer `json:"missing,omitempty"` // configured, but not there
	Error   *CatalogError           `json:"error,omitempty"`
}

// DefinitionAnswer is one tool's whole definition, or why there is none.
type DefinitionAnswer struct {
	Definition json.RawMessage `json:"definition,omitempty"`
	Error      *CatalogError   `json:"error,omitempty"`
}

// CatalogError says why the catalog has no answer.
type CatalogError struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// typeUnknownTool is the error type of a server or tool that does not exist.
const typeUnknownTool = "UnknownTool"

// typePolicyDenied is the error type of a tool that is withheld.
const typePolicyDenied = "PolicyDenied"

// typeValidation is the error type of a query that makes no sense.
const typeValidation = "ValidationError"

// Search looks for tools in the snapshot; detail is as callers write it.
func Search(snapshot *catalog.Snapshot, text, serverID, detail string, limit int) SearchAnswer {
	level, err := catalog.ParseDetail(detail)
	if err != nil {
		return SearchAnswer{Tools: []catalog.Entry{}, Error: &CatalogError{Type: typeValidation, Message: err.Error()}}
	}
	answer := SearchAnswer{Tools: snapshot.Search(catalog.Query{Text: text, ServerID: serverID, Detail: level, Limit: limit})}
	if answer.Tools == nil {
		answer.Tools = []catalog.Entry{} // an empty list, not null, in JSON
	}
	answer.Missing = snapshot.Missing(serverID)
	if _, known := snapshot.Server(serverID); serverID != "" && !known {
		answer.Error = &CatalogError{Type: typeUnknownTool, Message: "there is no server " + catalog.Quote(serverID)}
	}
	return answer
}

// Definition returns one tool's definition from the snapshot.
func Definition(snapshot *catalog.Snapshot, serverID, name string) DefinitionAnswer {
	definition, err := snapshot.Definition(serverID, name)
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &withheld):
		return DefinitionAnswer{Error: &CatalogError{Type: typePolicyDenied, Message: err.Error()}}
	case err != nil:
		return DefinitionAnswer{Error: &CatalogError{Type: typeUnknownTool, Message: err.Error()}}
	}
	return DefinitionAnswer{Definition: definition.JSON}
}
