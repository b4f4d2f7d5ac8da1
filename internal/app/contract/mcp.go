package contract

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxMessage bounds one message to a server, in bytes.
const maxMessage = 32 << 20

// ServeMCP is one of the servers that cases call, as an MCP server on stdio
// (MCP 2025-11-25, transports): it answers what it is asked on in, until that
// ends or ctx does. It knows no more of the protocol than a client needs that
// lists and calls tools.
func ServeMCP(ctx context.Context, server string, in io.Reader, out io.Writer) error {
	s := &mcpServer{name: server, out: out}
	defer s.calls.Wait()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	for ctx.Err() == nil && lines.Scan() {
		var message mcpMessage
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return fmt.Errorf("contract server %q: reading a message: %w", server, err)
		}
		if len(message.ID) > 0 { // else a notification
			s.calls.Go(func() { s.answer(message) })
		}
	}
	return lines.Err()
}

type mcpServer struct {
	name  string
	calls sync.WaitGroup

	mu  sync.Mutex // one message at a time
	out io.Writer
}

type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// answer writes the response to one request. A client that has hung up is
// noticed where its messages end.
func (s *mcpServer) answer(message mcpMessage) {
	response := map[string]any{"jsonrpc": "2.0", "id": message.ID}
	result, err := s.do(message.Method, message.Params)
	if err != nil {
		response["error"] = map[string]any{"code": -32602, "message": err.Error()}
	} else {
		response["result"] = result
	}
	line, err := json.Marshal(response)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(line, '\n'))
}

func (s *mcpServer) do(method string, params json.RawMessage) (any, error) {
	switch method {
	case "initialize":
		var asked struct {
			Version string `json:"protocolVersion"`
		}
		err := json.Unmarshal(params, &asked)
		return map[string]any{
			"protocolVersion": asked.Version,
			"capabilities":    map[string]any{"tools": struct{}{}},
			"serverInfo":      map[string]string{"name": s.name, "version": "1"},
		}, err
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return map[string]any{"tools": s.tools()}, nil
	case "tools/call":
		var call struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(params, &call); err != nil {
			return nil, err
		}
		return Answer(call.Name, call.Arguments)
	}
	return nil, errors.New("unknown method " + method)
}

func (s *mcpServer) tools() []Tool {
	var tools []Tool
	for _, tool := range Tools() {
		if tool.Server == s.name {
			tools = append(tools, tool)
		}
	}
	return tools
}
