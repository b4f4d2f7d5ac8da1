package code

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ownPrompt is the name of Airlock's prompt. Those of servers have a dot.
const ownPrompt = "code_mode"

// addPrompt offers the rules as a prompt too, for hosts that do not show a
// server's instructions to their model.
func (s *Server) addPrompt() {
	s.mcp.AddPrompt(&mcp.Prompt{
		Name:        ownPrompt,
		Title:       "Work by writing code",
		Description: "How to use the connected tools through programs: search, read, write code.",
		Arguments:   []*mcp.PromptArgument{{Name: "task", Description: "What is to be done.", Required: false}},
	}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		text := instructions(nil)
		if task := req.Params.Arguments["task"]; task != "" {
			text += "\n\nThe task: " + task
		}
		return &mcp.GetPromptResult{
			Description: "The rules of code mode.",
			Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}},
		}, nil
	})
}
