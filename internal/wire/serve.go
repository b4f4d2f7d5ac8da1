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

// Conversation is what all connections of one sandbox share. It can be held while the sandbox
// is suspended: see Hold.
type Conversation struct {
	handle   Handler
	inTurn   []string
	inFlight chan struct{}
	conns    chan struct{}
	large    chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	fail     context.CancelCauseFunc
	listener net.Listener
	acceptor pausable
	open     map[*openRequest]struct{}
	living   map[*connection]struct{}
	holding  *Held // not nil while connections are not read

	reopened []Request // see Reopen
}

// openRequest is a request whose answer has not been sent.
type openRequest struct {
	req    Request
	over   func()             // releases what the request takes up
	cancel context.CancelFunc // of what came with it

	// The connection that gets the answer; nil if the sandbox was suspended since, until a
	// connection reclaims the request. Guarded by the conversation's mutex, as is ready.
	conn  *connection
	ready *answer // the answer, if there is no connection for it
}

// NewConversation returns a conversation whose requests handle answers.
//
// Requests are handled concurrently, but those of the methods inTurn one after
// the other, in the order in which they arrive on a connection and before
// anything that comes after them is read.
func NewConversation(handle Handler, inTurn ...string) *Conversation {
	return &Conversation{
		handle:   handle,
		inTurn:   inTurn,
		inFlight: make(chan struct{}, MaxInFlight),
		conns:    make(chan struct{}, MaxConns),
		large:    make(chan struct{}, maxLarge),
		open:     map[*openRequest]struct{}{},
		living:   map[*connection]struct{}{},
	}
}

// Serve is NewConversation(handle, inTurn...).Serve(ctx, listener).
func Serve(ctx context.Context, listener net.Listener, handle Handler, inTurn ...string) error {
	return NewConversation(handle, inTurn...).Serve(ctx, listener)
}

// Serve accepts connections and answers their requests until ctx ends, the
// listener is closed (both return nil), or the far side breaks the protocol or
// the handler fails (the first such error is returned). Before it returns it
// closes the listener and every connection and waits for every handler. It may be called once.
func (c *Conversation) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.fail, c.listener = cancel, listener
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for _, req := range c.reopened {
		c.reopen(ctx, req)
	}
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

func (c *Conversation) accept(ctx context.Context, listener net.Listener) error {
	for {
		select {
		case c.conns <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := listener.Accept()
		for c.pausedBy(ctx.Done(), &c.acceptor, err) {
			conn, err = listener.Accept()
		}
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accepting on the socket: %w", err)
		}
		own, ctx := c.connected(ctx, conn)
		c.running.Go(func() { own.serve(ctx) })
	}
}

// connection is one connection of a conversation.
type connection struct {
	of     *Conversation
	conn   net.Conn
	cancel context.CancelFunc // of the requests that came on it
	done   <-chan struct{}    // closed when they are cancelled
	writer *answers
	reader pausable

	received int64 // bytes that were read; used by the reader's goroutine, and while it is paused
	framed   int64 // bytes of them that were frames
}

// connected registers an accepted connection. It also returns the context of the requests that come on it.
func (c *Conversation) connected(ctx context.Context, conn net.Conn) (*connection, context.Context) {
	own := &connection{of: c, conn: conn}
	ctx, own.cancel = context.WithCancel(ctx)
	own.done = ctx.Done()
	own.writer = &answers{out: conn, alone: func() bool { return len(c.inFlight) <= 1 }}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.living[own] = struct{}{}
	if c.holding != nil {
		interruptReads(conn)
	}
	return own, ctx
}

// serve has the requests of the connection answered, until it ends. They are cancelled if the far side hangs up,
// unless the sandbox was suspended. An error of the far side ends the conversation.
func (n *connection) serve(ctx context.Context) {
	c := n.of
	stop := context.AfterFunc(ctx, func() { n.conn.Close() })
	defer stop()
	handlers := newHandlers(&c.running, func(r *openRequest) { c.answer(ctx, r) })
	defer handlers.close()
	if err := n.read(ctx, handlers); err != nil {
		// Before the far side sees the end: a program that ends then must not hide why.
		c.fail(err)
	}
	n.conn.Close()
	<-c.conns
	if !c.left(n) {
		n.cancel()
	}
}

// left removes a connection that has ended. It reports whether its requests go on without it.
func (c *Conversation) left(n *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, living := c.living[n]; !living {
		return true // detached
	}
	delete(c.living, n)
	if c.holding != nil {
		c.holding.changed()
	}
	for r := range c.open {
		if r.conn == n {
			r.cancel()
		}
	}
	return false
}

// read reads requests until the connection ends.
func (n *connection) read(ctx context.Context, handlers *handlers) error {
	c := n.of
	reader := &frameReader{in: bufio.NewReaderSize(n, 64<<10), large: c.large}
	for {
		frame, release, err := reader.next(n.done)
		if err != nil {
			release()
			if errors.As(err, new(*ProtocolError)) {
				return err
			}
			return nil // the far side hung up, or the conversation is over
		}
		n.framed += int64(len(frame)) + 1
		req, err := ParseRequest(frame)
		if err != nil {
			release()
			return err
		}
		if req.Method == MethodReclaim {
			release()
			c.reclaim(n, req)
			continue
		}
		select {
		case c.inFlight <- struct{}{}:
		case <-n.done:
			release()
			return nil
		}
		opened := &openRequest{req: req, conn: n, cancel: n.cancel, over: func() {
			release()
			<-c.inFlight
		}}
		c.opened(opened)
		if slices.Contains(c.inTurn, req.Method) {
			c.answer(ctx, opened)
			continue
		}
		handlers.handle(opened)
	}
}

// opened registers a request that is handled from now on.
func (c *Conversation) opened(r *openRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[r] = struct{}{}
}

// Open returns the requests whose answers have not been sent, in no order. Their bytes are not copied: they belong
// to the conversation.
func (c *Conversation) Open() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := make([]Request, 0, len(c.open))
	for r := range c.open {
		open = append(open, r.req)
	}
	return open
}

// Reopen has Serve begin with requests, at most MaxInFlight, whose connections ended when their sandbox was
// suspended: each is handled at once, and its answer waits until a connection reclaims it. It is called before Serve.
func (c *Conversation) Reopen(requests []Request) { c.reopened = requests }

// reopen handles a request without a connection.
func (c *Conversation) reopen(ctx context.Context, req Request) {
	c.inFlight <- struct{}{}
	ctx, cancel := context.WithCancel(ctx)
	r := &openRequest{req: req, cancel: cancel, over: func() { cancel(); <-c.inFlight }}
	c.opened(r)
	c.running.Go(func() { c.answer(ctx, r) })
}

// answer handles a request and sends its answer, or keeps it for a connection that will reclaim it.
func (c *Conversation) answer(ctx context.Context, r *openRequest) {
	if ctx.Err() != nil {
		c.closeRequest(r)
		r.over()
		return // messages after the end of the conversation do not count
	}
	result, err := c.handle(ctx, r.req)
	if err != nil {
		c.closeRequest(r)
		r.over()
		c.fail(err)
		return
	}
	done := answer{id: r.req.ID, result: result, left: func(err error) {
		if err != nil && ctx.Err() == nil {
			c.fail(err)
		}
		if lasting, ok := result.(Lasting); ok {
			lasting.Left()
		}
		r.over()
	}}
	if conn := c.answered(r, &done); conn != nil {
		conn.writer.send(done)
	}
}

// answered returns the connection for an answer. If no connection is open, the answer is kept.
func (c *Conversation) answered(r *openRequest, done *answer) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.conn == nil {
		r.ready = done
		return nil
	}
	delete(c.open, r)
	return r.conn
}

func (c *Conversation) closeRequest(r *openRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, r)
}
