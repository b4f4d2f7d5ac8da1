package server

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Methods of the Tasks extension of MCP 2026-07-28.
const (
	MethodGetTask    = "tasks/get"
	MethodUpdateTask = "tasks/update"
	MethodCancelTask = "tasks/cancel"
)

// TaskMethods are the methods whose params are TaskParams.
var TaskMethods = []string{MethodGetTask, MethodUpdateTask, MethodCancelTask}

// TaskParams are the params of all methods of tasks.
type TaskParams struct {
	mcp.ParamsBase

	TaskID         string               `json:"taskId"`
	InputResponses mcp.InputResponseMap `json:"inputResponses,omitempty"` // of tasks/update
}
