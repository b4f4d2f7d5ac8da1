package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// MaxMessage is the maximum size of a message of a host on stdio or over HTTP, in bytes. A program
// of maximum size fits with any JSON escaping.
const MaxMessage = 16 << 20

// Serve is ServeConnection for the host that started this program.
func (t *Transport) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return t.ServeConnection(ctx, in, out, Connection{Process: os.Getpid()})
}

// Connection describes a connected host that does not use HTTP.
type Connection struct {
	Local Local // its caller; nil: the one of the transport
	// Process is the process ID of the program that the host started, such as `airlock mcp`. If it is
	// 0, the lineage of the caller is unknown.
	Process int
	// Began is called with the ID of the session before the first message. The function that
	// it returns is called when the session has ended. Began may be nil.
	Began func(session string) (ended func())
}

// ServeConnection serves one host over newline-delimited JSON until the host closes its end,
// which is not an error, or ctx ends. Only protocol messages are written to out. Each
// connection is a separate session.
//
// After the host has closed its end, pending requests that need no work, such as initialize
// and tools/list, are still answered, and its tool calls are cancelled. When ServeConnection
// returns, all runs of the session have ended. If ctx ended it, one read of in may still block
// until in is closed.
func (t *Transport) ServeConnection(ctx context.Context, in io.Reader, out io.Writer, c Connection) error {
	messages, toSession := io.Pipe()
	filter := newLineFilter(in, out)
	filter.naming = t.naming
	defer t.connected.add(filter)()
	transport := &mcp.IOTransport{Reader: messages, Writer: filter, MaxLineLength: -1}
	id := telemetry.NewID("ses")
	if c.Local == nil {
		c.Local = t.callers.local
	}
	if c.Began != nil {
		defer c.Began(id)()
	}
	session, err := t.face.Connect(context.WithValue(
		ctx, connectionKey{}, connected{id, processLineage(c.Process), c.Local}), transport, nil)
	if err != nil {
		return fmt.Errorf("starting the session: %w", err)
	}
	go func() {
		err := filter.copyTo(toSession)
		filter.answerPrompt(ctx)
		toSession.CloseWithError(err)
	}()
	// The end of the input cancels requests in progress. Closing the session would wait for
	// them instead.
	defer context.AfterFunc(ctx, func() { toSession.Close() })()
	defer t.end(id)
	if err := session.Wait(); err != nil && ctx.Err() == nil && !isGone(err) {
		return fmt.Errorf("talking to the host: %w", err)
	}
	return ctx.Err()
}

// isGone reports whether an error only means that the host has closed its end.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}
