package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Relay is the origin of one request to a server: the person whom the server may ask, if
// Config.Elicitation is set, and the host that receives its notifications. Its methods are
// safe for concurrent use.
type Relay interface {
	// Elicit asks the person and must name the asking server. An error refuses the
	// server's question; the server does not get its text.
	Elicit(ctx context.Context, e Elicitation) (ElicitationAnswer, error)
	// Notify receives notifications about the request: the params of a progress
	// notification, without its token, or of a log message. It must return quickly,
	// because the server's other messages wait for it. A cancelled call may return
	// before the last Notify does.
	Notify(method string, params json.RawMessage)
	// LogLevel returns the level from which on log messages are wanted, or "" for the server's choice.
	LogLevel() string
}

// Elicitation is a server's question to a person (MCP 2025-11-25, Elicitation). All texts
// come from the server.
type Elicitation struct {
	ServerID string
	Message  string
	Schema   json.RawMessage // of the answer, in form mode; nil in URL mode
	URL      string          // to be opened, in URL mode
	ID       string          // of the elicitation, in URL mode
}

// ElicitationAnswer is the person's answer.
type ElicitationAnswer struct {
	Action  string          `json:"action"`            // accept, decline or cancel
	Content json.RawMessage `json:"content,omitempty"` // an object, when a form was accepted
}

// The methods with which a server asks its client for something.
const (
	methodElicit    = "elicitation/create"
	methodSampling  = "sampling/createMessage"
	methodListRoots = "roots/list"
)

const (
	refusedSampling = "Airlock lets no server use the host's model"
	refusedRoots    = "Airlock tells no server the host's directories"
	refusedElicit   = "Airlock lets this server ask no person (servers.<id>.elicitation)"
	unknownAsker    = "the question belongs to no request that is open"
)

// requests answers what a server asks for itself. The SDK would answer that there are
// no directories, and it refuses forms that MCP allows.
type requests struct {
	config Config
	tap    *tap
}

// answer is a middleware of the SDK.
func (r requests) answer(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case methodSampling:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refusedSampling}
		case methodListRoots:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refusedRoots}
		case methodElicit:
			return r.elicit(ctx, req)
		}
		return next(ctx, method, req)
	}
}

// elicit asks the person behind the request that the question belongs to, as the tap
// has marked it.
func (r requests) elicit(ctx context.Context, req mcp.Request) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.ElicitParams)
	if !ok || params == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the params are missing"}
	}
	if !r.config.Elicitation {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refusedElicit}
	}
	mark, _ := params.Meta[askMark].(string)
	asked := r.tap.asker(mark)
	if asked == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: unknownAsker}
	}
	shape, err := json.Marshal(params.RequestedSchema)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the schema cannot be read"}
	}
	given, err := asked.elicit(ctx, r.config.ID, elicitParams{
		Mode: params.Mode, Message: params.Message, Schema: shape, URL: params.URL, ID: params.ElicitationID,
	})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	result := &mcp.ElicitResult{Action: given.Action}
	if given.Content != nil {
		if err := strictjson.UnmarshalOpen(given.Content, &result.Content); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer is not an object"}
		}
	}
	return result, nil
}

// elicitParams are the params of elicitation/create.
type elicitParams struct {
	Mode    string          `json:"mode"`
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema"`
	URL     string          `json:"url"`
	ID      string          `json:"elicitationId"`
}

// elicit asks the person behind the exchange. The time limit of the call stands still
// meanwhile. Errors may be shown to the server.
func (e *exchange) elicit(ctx context.Context, serverID string, p elicitParams) (ElicitationAnswer, error) {
	question := Elicitation{ServerID: serverID, Message: p.Message, URL: p.URL, ID: p.ID}
	switch p.Mode {
	case "", "form":
		if question.Schema = p.Schema; string(question.Schema) == "null" {
			question.Schema = nil
		}
		if p.URL != "" {
			return ElicitationAnswer{}, fmt.Errorf("a form must not have a URL")
		}
	case "url":
		if p.URL == "" {
			return ElicitationAnswer{}, fmt.Errorf("the URL is missing")
		}
	default:
		return ElicitationAnswer{}, fmt.Errorf("the mode %q is unknown", p.Mode)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	e.timeout.Pause()
	defer e.timeout.Resume()
	given, err := e.relay.Elicit(ctx, question)
	if err != nil {
		return ElicitationAnswer{}, fmt.Errorf("no person could be asked")
	}
	return given.checked(question.Schema)
}

// checked returns the answer for the server: one of the three actions, and content only for
// an accepted form, complete and valid for the form's schema.
func (a ElicitationAnswer) checked(form json.RawMessage) (ElicitationAnswer, error) {
	switch {
	case a.Action == "decline" || a.Action == "cancel":
		return ElicitationAnswer{Action: a.Action}, nil
	case a.Action != "accept":
		return ElicitationAnswer{}, fmt.Errorf("no person could be asked")
	case form == nil:
		return ElicitationAnswer{Action: a.Action}, nil
	}
	content, err := withDefaults(a.Content, form)
	if err != nil {
		return ElicitationAnswer{}, err
	}
	compiled, err := schema.Compile(form)
	if err != nil {
		return ElicitationAnswer{}, fmt.Errorf("the schema of the answer cannot be used")
	}
	if err := compiled.Validate(content); err != nil {
		return ElicitationAnswer{}, fmt.Errorf("the answer does not have the form that was asked for")
	}
	return ElicitationAnswer{Action: a.Action, Content: content}, nil
}

// withDefaults adds what the person left out and the form has a default for.
func withDefaults(content, form json.RawMessage) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if len(content) > 0 {
		if err := strictjson.UnmarshalOpen(content, &values); err != nil || values == nil {
			return nil, fmt.Errorf("the answer is not an object")
		}
	}
	var fields struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	if canon.IsDeep(form) || strictjson.UnmarshalOpen(form, &fields) != nil {
		return nil, fmt.Errorf("the schema of the answer cannot be used")
	}
	for name, field := range fields.Properties {
		if _, given := values[name]; !given && field.Default != nil {
			values[name] = field.Default
		}
	}
	return json.Marshal(values)
}
