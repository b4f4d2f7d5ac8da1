package upstream

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdio is the connection to a server's process. Unlike the SDK's own it
// survives lines that are not JSON-RPC and messages that are too large.
type stdio struct {
	process *process
	tap     *tap
	skipped skipped // lines of stdout that are not JSON-RPC

	lines    *lineWriter
	messages chan jsonrpc.Message // from the reader; closed at the end of the stream
	own      chan jsonrpc.Message // from skipDiscovery; buffered, capacity 1
	closed   chan struct{}
	once     sync.Once
	running  sync.WaitGroup // reader and writer
}

var (
	_ link           = (*stdio)(nil)
	_ mcp.Connection = (*stdio)(nil)
)

func newStdio(p *process, t *tap, log *slog.Logger) *stdio {
	c := &stdio{
		process: p, tap: t, skipped: skipped{log: log, serverID: p.serverID},
		messages: make(chan jsonrpc.Message), own: make(chan jsonrpc.Message, 1), closed: make(chan struct{}),
	}
	c.lines = newLineWriter(p.stdin, c.closed, func() { c.Close() })
	c.lines.alone = t.waitsForOne
	c.running.Go(c.readAll)
	c.running.Go(c.lines.run)
	return c
}

// Connect implements mcp.Transport.
func (c *stdio) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection; a process has none.
func (c *stdio) SessionID() string { return "" }

// Read implements mcp.Connection.
func (c *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message, ok := <-c.messages:
		if !ok {
			return nil, io.EOF
		}
		return message, nil
	case message := <-c.own:
		return message, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection. A server that does not read its stdin blocks
// the writer, not the callers beyond their deadlines.
func (c *stdio) Write(ctx context.Context, message jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	c.tap.outgoing(ctx, message)
	defer c.tap.written(message)
	if c.isClosed() {
		return io.ErrClosedPipe
	}
	sent, err := c.lines.write(ctx, append(line, '\n'))
	if sent {
		exchangeOf(ctx).note(func(a *answer) { a.sent = true })
	}
	return err
}

func (c *stdio) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Close implements mcp.Connection. The SDK calls it with a lock held, so it
// only lets go; stopping the process is up to the session.
func (c *stdio) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.process.stdin.Close()
	})
	return nil
}

// readAll hands messages over until the server's stdout ends.
func (c *stdio) readAll() {
	defer close(c.messages)
	defer c.process.stdout.Close()
	reader := newLineReader(c.process.stdout, maxMessage)
	var large *large
	reader.large = func() int {
		large = c.tap.beginLarge(c.closed)
		return large.most()
	}
	for {
		large.end()
		large = nil
		line, err := reader.next()
		if err != nil {
			return
		}
		if line.tooLarge != nil {
			line.messages = append(line.messages, c.tap.tooLarge(*line.tooLarge))
		}
		for _, id := range line.tooDeep {
			line.messages = append(line.messages, c.tap.tooDeep(id))
		}
		if line.rubbish != "" {
			c.skipped.note(line.rubbish)
		}
		for _, message := range line.messages {
			message, ok := c.tap.incoming(message, jsonrpc.ID{})
			if !ok {
				c.skipped.note(tooManyRequests)
			}
			if !ok || message == nil {
				continue
			}
			select {
			case c.messages <- message:
			case <-c.closed:
				return
			}
		}
	}
}

// skipDiscovery implements link.
func (c *stdio) skipDiscovery() bool {
	answer, ok := c.tap.refuseDiscovery()
	if ok {
		c.own <- answer
	}
	return ok
}

// gone implements link.
func (c *stdio) gone() bool {
	select {
	case <-c.process.exited:
		return true
	default:
		return c.isClosed()
	}
}

// stop implements link.
func (c *stdio) stop() {
	c.Close()
	c.process.stop()
	c.running.Wait()
}
