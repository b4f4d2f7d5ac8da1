package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Gate removes secrets from everything that is sent to a host. Its methods are safe for
// concurrent use and idempotent.
type Gate interface {
	// Text removes secrets.
	Text(text string) string
	// Sentence removes secrets and paths of this machine. It is used for messages of Airlock itself,
	// such as errors; Text is used for the results of runs.
	Sentence(text string) string
	// JSON is Text for each text of a JSON value, which keeps its shape.
	JSON(raw json.RawMessage) json.RawMessage
}

// openGate changes nothing. It is the default gate.
type openGate struct{}

func (openGate) Text(text string) string                  { return text }
func (openGate) Sentence(text string) string              { return text }
func (openGate) JSON(raw json.RawMessage) json.RawMessage { return raw }

// cleanAnswers passes every result through the gate.
func (t *Transport) cleanAnswers(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil {
			return res, t.cleanError(err)
		}
		if res == nil {
			return nil, nil
		}
		switch answer := res.(type) {
		case *mcp.CallToolResult:
			t.CleanResult(answer)
		case *mcp.ReadResourceResult:
			for _, contents := range answer.Contents {
				if !isApp(req) {
					t.cleanResource(contents)
				}
			}
		case *mcp.CompleteResult:
			for i, value := range answer.Completion.Values {
				answer.Completion.Values[i] = t.gate.Text(value)
			}
		case *mcp.GetPromptResult:
			for _, message := range answer.Messages {
				t.cleanContent(message.Content, t.gate.Text)
			}
		}
		return res, nil
	}
}

// isApp reports whether a request reads an MCP App: a program that was reviewed, and that a replacement would break.
// The broker has removed Airlock's credentials.
func isApp(req mcp.Request) bool {
	read, ok := req.(*mcp.ReadResourceRequest)
	return ok && strings.HasPrefix(read.Params.URI, "ui://")
}

// cleanError returns an error that has passed through the gate. The SDK's errors repeat the URI
// of a resource and the name of a tool or a prompt.
func (t *Transport) cleanError(err error) error {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		if text := t.gate.Text(err.Error()); text != err.Error() {
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
		}
		return err
	}
	clean := *refused
	clean.Message = t.gate.Text(refused.Message)
	if len(refused.Data) > 0 {
		clean.Data = t.gate.JSON(refused.Data)
	}
	return &clean
}

// CleanResult passes a result that is part of another answer through the gate.
func (t *Transport) CleanResult(answer *mcp.CallToolResult) {
	clean := t.gate.Text
	if answer.IsError && answer.StructuredContent == nil { // a message of Airlock itself
		clean = t.gate.Sentence
	}
	for _, content := range answer.Content {
		t.cleanContent(content, clean)
	}
	if answer.StructuredContent != nil {
		answer.StructuredContent = t.cleanData(answer.StructuredContent)
	}
}

// cleanContent cleans one content block.
func (t *Transport) cleanContent(content mcp.Content, clean func(string) string) {
	switch block := content.(type) {
	case *mcp.TextContent:
		block.Text = clean(block.Text)
	case *mcp.ResourceLink:
		block.URI, block.Name, block.Title, block.Description = clean(block.URI), clean(block.Name), clean(block.Title),
			clean(block.Description)
	case *mcp.EmbeddedResource:
		t.cleanResource(block.Resource)
	}
}

// cleanResource cleans the content of a resource. Binary data is cleaned as well, because it may
// contain a credential in plain text.
func (t *Transport) cleanResource(contents *mcp.ResourceContents) {
	if contents == nil {
		return
	}
	contents.Text = t.gate.Text(contents.Text)
	if len(contents.Blob) > 0 {
		contents.Blob = []byte(t.gate.Text(string(contents.Blob)))
	}
}

// cleanRequests passes the messages that Airlock initiates through the gate: questions to a
// person, progress and log messages.
func (t *Transport) cleanRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch params := req.GetParams().(type) {
		case *mcp.ElicitParams:
			params.Message, params.URL = t.gate.Text(params.Message), t.gate.Text(params.URL)
			params.RequestedSchema = t.cleanData(params.RequestedSchema)
		case *mcp.ProgressNotificationParams:
			params.Message = t.gate.Text(params.Message)
		//lint:ignore SA1019 revisions before 2026-07-28 have it
		case *mcp.LoggingMessageParams:
			params.Data = t.cleanData(params.Data)
		}
		return next(ctx, method, req)
	}
}

// cleanData is Text for strings and JSON for other values.
func (t *Transport) cleanData(data any) any {
	switch data := data.(type) {
	case nil:
		return nil
	case string:
		return t.gate.Text(data)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	return t.gate.JSON(raw)
}
