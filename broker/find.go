package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/policies"
)

// find looks up the tool in the run's snapshot. A tool that is not in the snapshot does not exist,
// even if the server has it now.
func (a *attempt) find(context.Context) *failure {
	tool, err := a.run.snapshot.Lookup(a.call.ServerID, a.call.Name)
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &unknown):
		f := failf(errortype.UnknownTool, "%s", unknown.Error())
		if server, _ := a.run.snapshot.Server(a.call.ServerID); unknown.Problem != "" && server.Retrying {
			return f.retryable()
		}
		return f
	case errors.As(err, &withheld):
		f := failf(errortype.PolicyDenied, "%s", withheld.Error())
		f.detail = withheld.Error()
		return f
	}
	if err != nil {
		return failf(errortype.UnknownTool, "the tool is not known").because(err)
	}
	switch {
	case a.call.Host:
	case tool.Use != "" || tool.Kind == catalog.KindTemplate || tool.Kind == catalog.KindAbout:
		return failf(errortype.UnknownTool, "code reads resources and calls tools; nothing else is called %s",
			catalog.Quote(a.call.Name))
	case tool.UI.OnlyApps:
		return failf(errortype.UnknownTool,
			"the tool %q of the server %q is for the server's apps only: use another one", tool.Name, tool.ServerID)
	}
	a.tool = tool
	if tool.Kind == catalog.KindResource {
		if a.call.Arguments, err = json.Marshal(map[string]string{"uri": tool.Identifier()}); err != nil {
			return failf(errortype.Validation, "the URI cannot be read").because(err)
		}
	}
	a.rules = a.broker.admission.Rules()
	if _, configured := a.rules.Operator[tool.ServerID]; a.rules.Operator != nil && !configured {
		return failf(errortype.UnknownTool, "the operator has removed or disabled the server %q since the run began",
			tool.ServerID)
	}
	a.settings = a.rules.Operator.Settings(tool.ServerID, tool.Name, a.run.flagsIn(a.run.snapshot, tool))
	return nil
}

// flagsIn returns the suspicious properties of a tool's definition in a snapshot. They are computed
// once for each tool and snapshot.
func (s *RunCalls) flagsIn(snapshot *catalog.Snapshot, tool catalog.Tool) []catalog.Flag {
	key := policies.ToolID(tool.ServerID, tool.Name)
	s.mu.Lock()
	flags, known := s.flags[snapshot][key]
	s.mu.Unlock()
	if known {
		return flags
	}
	flags = snapshot.Flags(tool.ServerID, tool.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.flags { // at most the run's own and the newest
		if other != snapshot && other != s.snapshot {
			delete(s.flags, other)
		}
	}
	if s.flags[snapshot] == nil {
		s.flags[snapshot] = map[string][]catalog.Flag{}
	}
	s.flags[snapshot][key] = flags
	return flags
}

// validate checks the arguments against the tool's inputSchema. MCP 2025-11-25 (Tools, Error
// Handling) requires a failure to be returned as the tool's own error, so that the model can repair
// its call.
func (a *attempt) validate(context.Context) *failure {
	if len(a.call.Arguments) == 0 {
		a.call.Arguments = json.RawMessage("{}")
	}
	v, err := strictjson.Value(a.call.Arguments)
	if err != nil {
		return failf(errortype.Validation, "the arguments cannot be read: %v", err)
	}
	input, ok := v.(map[string]any)
	if !ok {
		return failf(errortype.Validation,
			"the arguments must be one JSON object with the tool's parameters as members")
	}
	if a.arguments, err = compact(a.call.Arguments); err != nil {
		return failf(errortype.Validation, "the arguments cannot be read").because(err)
	}
	check, err := a.broker.inputs.Get(catalog.UseName(a.tool.Use, a.tool.Digest), a.tool.InputSchema)
	if err == nil {
		a.arguments, err = respell(a.arguments, input, check.Misspelt(input))
	}
	a.input, a.hash = input, a.broker.recorder.Hash(a.arguments)
	if err != nil {
		return failf(errortype.Validation,
			"the tool cannot be called: its input schema is unusable (%v); its server has to correct it", err)
	}
	if err := check.Check(v); err != nil {
		return failf(errortype.Validation, "%s", invalid(a.tool, input, err))
	}
	return nil
}

// respell renames members of arguments, in their text and in their decoded form. The decision, the
// record and the server get the new names.
func respell(text json.RawMessage, input map[string]any, names map[string]string) (json.RawMessage, error) {
	if len(names) == 0 {
		return text, nil
	}
	var members map[string]json.RawMessage
	if err := strictjson.UnmarshalOpen(text, &members); err != nil {
		return nil, err
	}
	for from, to := range names {
		input[to], members[to] = input[from], members[from]
		delete(input, from)
		delete(members, from)
	}
	return canon.Verbatim(members)
}

// invalid returns a message with the correction and the location of the parameters' description.
func invalid(tool catalog.Tool, input map[string]any, err error) string {
	return fmt.Sprintf("the arguments do not fit the tool's input schema: %v.%s The catalog has the definition of %q "+
		"of server %q",
		err, misnamed(tool, input), tool.Name, tool.ServerID)
}

// misnamed lists the arguments that the schema does not describe, and those that it does: usually
// an argument was given under a wrong name.
func misnamed(tool catalog.Tool, input map[string]any) string {
	const mostNames = 12
	var described struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Closed     json.RawMessage            `json:"additionalProperties"`
	}
	if strictjson.UnmarshalOpen(tool.InputSchema, &described) != nil || len(described.Properties) == 0 ||
		string(described.Closed) == "false" {
		return "" // the message of the check is sufficient
	}
	var unknown []string
	for name := range input {
		if _, known := described.Properties[name]; !known {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return fmt.Sprintf(" The schema describes %s, but not %s.",
		quotedNames(slices.Collect(maps.Keys(described.Properties)), mostNames), quotedNames(unknown, mostNames))
}

// quotedNames lists names in order, each quoted and short, and counts those beyond most.
func quotedNames(names []string, most int) string {
	const longest = 60
	slices.Sort(names)
	var quoted []string
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(truncate.Characters(name, longest)))
	}
	if more := len(names) - most; more > 0 {
		quoted = append(quoted, fmt.Sprintf("%d more", more))
	}
	return strings.Join(quoted, ", ")
}
