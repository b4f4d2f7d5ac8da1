package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxMessage is the largest message, in bytes, that a host may send on stdio or
// over HTTP. A program of the largest size fits, however it is escaped.
const MaxMessage = 16 << 20

// Serve talks to one host over newline-delimited JSON until the host closes in,
// which is no error, or ctx ends. Only protocol messages are written to out.
// When Serve returns, the runs that the host was waiting for have ended. When
// ctx ended it, one read of in may still be waiting until in is closed.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	messages, toSession := io.Pipe()
	filter := &lineFilter{in: bufio.NewReaderSize(in, 64<<10), out: out}
	transport := &mcp.IOTransport{Reader: messages, Writer: filter, MaxLineLength: -1}
	session, err := s.mcp.Connect(ctx, transport, nil)
	if err != nil {
		return fmt.Errorf("starting the session: %w", err)
	}
	go func() { toSession.CloseWithError(filter.copyTo(toSession)) }()
	// The end of the input cancels what is going on; closing the session would
	// wait for it instead.
	defer context.AfterFunc(ctx, func() { toSession.Close() })()
	if err := session.Wait(); ctx.Err() == nil && err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("talking to the host: %w", err)
	}
	return ctx.Err()
}

// lineFilter stands between a host and the SDK, whose session dies of the first
// line that is not JSON. A line that is no message is answered with an error,
// as JSON-RPC 2.0, section 5.1, wants it, and goes no further.
type lineFilter struct {
	in      *bufio.Reader
	batches bool // the host speaks a revision that has batches

	mu  sync.Mutex // guards out: the SDK writes too
	out io.Writer
}

// Write writes one message of the SDK, whole.
func (f *lineFilter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(p)
}

// Close does nothing: the streams belong to the caller of Serve.
func (f *lineFilter) Close() error { return nil }

// copyTo writes the lines that are messages to w until the input ends, which
// is no error.
func (f *lineFilter) copyTo(w io.Writer) error {
	for {
		line, err := f.line()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if line, err = f.admit(line); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
}

// line reads one line without ever keeping more than MaxMessage of it; a longer
// one is answered with an error and returned empty. The last line may lack its
// newline.
func (f *lineFilter) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := f.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxMessage; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return nil, f.reject(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message has more than %d bytes", MaxMessage))
		case err != nil && len(line) == 0:
			return nil, err
		}
		return line, nil
	}
}

// admit returns the bytes to hand on for one line: the line when it is a
// message, nothing when it is blank or has been answered with an error.
func (f *lineFilter) admit(line []byte) ([]byte, error) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return nil, nil
	case !json.Valid(line):
		return nil, f.reject(jsonrpc.CodeParseError, "the line is not JSON")
	case line[0] == '[' && !f.batches:
		return nil, f.reject(jsonrpc.CodeInvalidRequest, "send one message a line: batches are no part of this revision of MCP")
	}
	messages := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
			return nil, f.reject(jsonrpc.CodeInvalidRequest, "the batch is empty")
		}
	}
	for _, raw := range messages {
		message, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			return nil, f.reject(jsonrpc.CodeInvalidRequest, "the message is no JSON-RPC 2.0 request, notification or response")
		}
		f.notice(message)
	}
	return append(line, '\n'), nil
}

// notice sees from an initialize request whether the host may send batches:
// MCP had them in 2025-03-26 and before.
func (f *lineFilter) notice(message jsonrpc.Message) {
	req, ok := message.(*jsonrpc.Request)
	if !ok || req.Method != "initialize" {
		return
	}
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(req.Params, &params); err == nil {
		f.batches = params.ProtocolVersion == "2025-03-26" || params.ProtocolVersion == "2024-11-05"
	}
}

// reject answers a line that is no message. Its ID is unknown, so null.
func (f *lineFilter) reject(code int64, sentence string) error {
	line, err := encode(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": sentence},
	})
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return err
}
