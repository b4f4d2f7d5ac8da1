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

// maxText is the maximum length of the text of an answer, in bytes. Hosts cut or refuse longer
// answers, each in a different way, so Airlock cuts them and adds a note.
const maxText = 40_000

// structured answers with value as structured content and, for hosts that read
// only text, as one line of JSON (MCP 2025-11-25, Tools, Structured Content).
// notes follow as separate text blocks.
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

// machineError is the error that a model sees if the operating system caused the failure: one
// sentence without the steps and file names of this machine. Those are in the log.
type machineError struct{ cause syscall.Errno }

// ofMachine replaces an error of the operating system with a machineError. It returns other errors
// unchanged.
func ofMachine(err error) error {
	if cause, ok := errors.AsType[syscall.Errno](err); ok {
		return &machineError{cause}
	}
	return err
}

// Error returns a sentence with the message of the operating system.
func (e *machineError) Error() string {
	return "Airlock could not do this on its machine: " + e.cause.Error()
}

// Hint returns an instruction for the caller.
func (e *machineError) Hint() string {
	return "send it again once; if it fails again, tell the user: Airlock's own log has details"
}

// cut shortens a text to maxText and adds a note at its end.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	note := fmt.Sprintf(
		"\n[cut here: the answer has %d bytes; structuredContent holds all of it. Return less: filter and summarise "+
			"inside the program.]", len(text))
	return truncate.Head(text, maxText-len(note)) + note
}

// tail returns the end of a log, at most most bytes. If it omits something, the first line
// contains the number of omitted bytes.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := truncate.Tail(text, most)
	return fmt.Sprintf("[%d bytes before]\n%s", len(text)-len(end), end)
}
