package code

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// maxText is how many bytes of text one answer has. Hosts cut longer ones, or
// refuse them, each in its own way; so the cut is made here, where it can say so.
const maxText = 40_000

// structured answers with value as structured content and, for hosts that read
// only text, as one line of JSON (MCP 2025-11-25, Tools, Structured Content).
// notes follow as texts of their own.
func structured(value any, notes ...string) (*mcp.CallToolResult, error) {
	line, err := server.Encode(value)
	if err != nil {
		return nil, err
	}
	res := &mcp.CallToolResult{
		StructuredContent: json.RawMessage(line),
		Content:           []mcp.Content{&mcp.TextContent{Text: cut(string(line))}},
	}
	for _, note := range notes {
		res.Content = append(res.Content, &mcp.TextContent{Text: note})
	}
	return res, nil
}

// refused answers with a sentence, as a result that the model sees and can act on.
func refused(err error) *mcp.CallToolResult {
	text := err.Error()
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		text += "\nhint: " + advised.Hint()
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: cut(text)}}}
}

// machineError is what a model is told of an error that the operating system is the cause
// of: one sentence, without the steps and the files of this machine, which stand in the log.
type machineError struct{ cause syscall.Errno }

// ofMachine returns a machineError in place of such an error, and any other as it is.
func ofMachine(err error) error {
	if cause, ok := errors.AsType[syscall.Errno](err); ok {
		return &machineError{cause}
	}
	return err
}

// Error says what the operating system says.
func (e *machineError) Error() string {
	return "Airlock could not do this on its machine: " + e.cause.Error()
}

// Hint says what to do.
func (e *machineError) Hint() string {
	return "send it again once; if it fails again, tell the user: Airlock's own log says more"
}

// cut shortens a text that is longer than maxText and says so at its end.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	note := fmt.Sprintf("\n[cut here: the answer has %d bytes; structuredContent holds all of it. Return less: filter and summarise inside the program.]", len(text))
	return truncate.Head(text, maxText-len(note)) + note
}

// tail returns the end of a log: at most most bytes, with a line before it that
// says how much is left out.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := truncate.Tail(text, most)
	return fmt.Sprintf("[%d bytes before]\n%s", len(text)-len(end), end)
}
