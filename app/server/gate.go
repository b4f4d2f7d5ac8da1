package server

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Gate cleans what leaves for a host, wherever it comes from. Its methods may be
// called concurrently, and do nothing to what was cleaned already.
type Gate interface {
	// Text removes secrets.
	Text(text string) string
	// Sentence is Text for what Airlock itself says, without paths of its host.
	Sentence(text string) string
	// JSON is Text for each text of a JSON value, which keeps its shape.
	JSON(raw json.RawMessage) json.RawMessage
}

// openGate lets everything through: for a server that was given no gate.
type openGate struct{}

func (openGate) Text(text string) string                  { return text }
func (openGate) Sentence(text string) string              { return text }
func (openGate) JSON(raw json.RawMessage) json.RawMessage { return raw }

// cleanAnswers has every result of a tool go through the gate.
func (s *Server) cleanAnswers(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if answer, ok := res.(*mcp.CallToolResult); ok && answer != nil && err == nil {
			s.cleanResult(answer)
		}
		return res, err
	}
}

func (s *Server) cleanResult(answer *mcp.CallToolResult) {
	clean := s.gate.Text
	if answer.IsError && answer.StructuredContent == nil { // a sentence of Airlock's own
		clean = s.gate.Sentence
	}
	for _, content := range answer.Content {
		switch content := content.(type) {
		case *mcp.TextContent:
			content.Text = clean(content.Text)
		case *mcp.ResourceLink: // its bytes were cleaned when they were attached
			content.Name, content.Description = clean(content.Name), clean(content.Description)
		}
	}
	if raw, ok := answer.StructuredContent.(json.RawMessage); ok {
		answer.StructuredContent = s.gate.JSON(raw)
	}
}

// cleanRequests has what Airlock sends by itself go through the gate: questions
// to a person, progress, log messages.
func (s *Server) cleanRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch params := req.GetParams().(type) {
		case *mcp.ElicitParams:
			params.Message = s.gate.Text(params.Message)
		case *mcp.ProgressNotificationParams:
			params.Message = s.gate.Text(params.Message)
		//lint:ignore SA1019 revisions before 2026-07-28 have it
		case *mcp.LoggingMessageParams:
			if text, ok := params.Data.(string); ok {
				params.Data = s.gate.Text(text)
			}
		}
		return next(ctx, method, req)
	}
}
