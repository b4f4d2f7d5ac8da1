package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// MaxMessage is the largest message, in bytes, that a host may send on stdio or
// over HTTP. A program of the largest size fits, however it is escaped.
const MaxMessage = 16 << 20

// Serve talks to one host over newline-delimited JSON until the host closes its
// end, which is no error, or ctx ends. Only protocol messages are written to out.
// The connection is a
// session of its own. When Serve returns, all its runs have ended. When
// ctx ended it, one read of in may still be waiting until in is closed.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	messages, toSession := io.Pipe()
	filter := newLineFilter(in, out)
	transport := &mcp.IOTransport{Reader: messages, Writer: filter, MaxLineLength: -1}
	id := telemetry.NewID("ses")
	session, err := s.mcp.Connect(context.WithValue(ctx, connectionKey{}, id), transport, nil)
	if err != nil {
		return fmt.Errorf("starting the session: %w", err)
	}
	go func() { toSession.CloseWithError(filter.copyTo(toSession)) }()
	// The end of the input cancels what is going on; closing the session would
	// wait for it instead.
	defer context.AfterFunc(ctx, func() { toSession.Close() })()
	defer s.endSession(id)
	if err := session.Wait(); err != nil && ctx.Err() == nil && !isGone(err) {
		return fmt.Errorf("talking to the host: %w", err)
	}
	return ctx.Err()
}

// isGone tells whether an error only says that the host has closed its end.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}
