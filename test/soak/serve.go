package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// note is what both tools take.
type note struct {
	Text string `json:"text"`
}

// serveTools is an MCP server on stdio with a tool that only reads, and one that
// changes something, which therefore needs a person's approval.
func serveTools(ctx context.Context) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "read", Description: "Returns a text.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, answer)
	mcp.AddTool(server, &mcp.Tool{Name: "change", Description: "Changes a text."}, answer)
	err := server.Run(ctx, &mcp.StdioTransport{})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func answer(_ context.Context, _ *mcp.CallToolRequest, n note) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%q it is", n.Text)}}}, nil,
		nil
}
