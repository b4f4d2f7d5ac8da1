package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
)

// The bounds of one conversation, over all its connections.
const (
	// MaxInFlight is how many requests are handled at once; the next one is
	// not read before one of them is answered.
	MaxInFlight = 64
	// MaxConns is how many connections may be open at once; the next one is not
	// accepted before one of them ends.
	MaxConns = 16
	// maxLarge is how many frames over smallFrame may be in memory at once.
	maxLarge = 4
)

// Handler answers one request with a value to encode as its result. It must be safe for
// concurrent use. An error ends the connection, so a failure that the peer should learn
// about belongs in the result.
type Handler func(ctx context.Context, req Request) (any, error)

// Lasting is a result that takes something up for as long as the far side has
// not read it. Left is called once: when the answer has left, or never will.
type Lasting interface{ Left() }

// Serve accepts connections and answers their requests until ctx ends, the
// listener is closed (both return nil), or the far side breaks the protocol or
// the handler fails (the first such error is returned). Before it returns it
// closes the listener and every connection and waits for every handler.
//
// Requests are handled concurrently, but those of the methods inTurn one after
// the other, in the order in which they arrive on a connection and before
// anything that comes after them is read.
func Serve(ctx context.Context, listener net.Listener, handle Handler, inTurn ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &conversation{
		handle:   handle,
		inTurn:   inTurn,
		fail:     cancel,
		inFlight: make(chan struct{}, MaxInFlight),
		conns:    make(chan struct{}, MaxConns),
		large:    make(chan struct{}, maxLarge),
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	err := c.accept(ctx, listener)
	if err != nil {
		cancel(err)
	}
	listener.Close()
	c.running.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) &&
		!errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

// conversation is what all connections of one Serve share.
type conversation struct {
	handle   Handler
	inTurn   []string
	fail     context.CancelCauseFunc // ends everything; the first cause stays
	inFlight chan struct{}
	conns    chan struct{}
	large    chan struct{}
	running  sync.WaitGroup
}

func (c *conversation) accept(ctx context.Context, listener net.Listener) error {
	for {
		select {
		case c.conns <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accepting on the socket: %w", err)
		}
		c.running.Go(func() {
			defer func() { <-c.conns }()
			if err := c.serveConn(ctx, conn); err != nil {
				c.fail(err)
			}
		})
	}
}

// serveConn reads one connection to its end.
func (c *conversation) serveConn(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	reader := &frameReader{in: bufio.NewReaderSize(conn, 64<<10), large: c.large}
	writer := &answers{out: conn, alone: func() bool { return len(c.inFlight) <= 1 }}
	handlers := newHandlers(func(h handling) { c.answer(ctx, writer, h.req, h.over) })
	defer handlers.close()
	for {
		frame, release, err := reader.next(ctx.Done())
		if err != nil {
			release()
			var violation *ProtocolError
			if errors.As(err, &violation) {
				return err
			}
			return nil // the far side hung up, or the conversation is over
		}
		req, err := ParseRequest(frame)
		if err != nil {
			release()
			return err
		}
		select {
		case c.inFlight <- struct{}{}:
		case <-ctx.Done():
			release()
			return nil
		}
		over := func() {
			release()
			<-c.inFlight
		}
		if slices.Contains(c.inTurn, req.Method) {
			c.answer(ctx, writer, req, over)
			continue
		}
		handlers.handle(handling{req, over})
	}
}

// answer handles a request. It calls over when the answer has left, or will not.
func (c *conversation) answer(ctx context.Context, writer *answers, req Request, over func()) {
	if ctx.Err() != nil {
		over()
		return // messages after the end of the conversation do not count
	}
	result, err := c.handle(ctx, req)
	if err != nil {
		over()
		c.fail(err)
		return
	}
	writer.send(answer{req.ID, result, func(err error) {
		if err != nil && ctx.Err() == nil {
			c.fail(err)
		}
		if lasting, ok := result.(Lasting); ok {
			lasting.Left()
		}
		over()
	}})
}
