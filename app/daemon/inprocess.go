package daemon

import (
	"context"
	"io"
	"sync"
)

// pipes is a Backend within this process.
type pipes struct {
	fromServer *io.PipeReader
	toServer   *io.PipeWriter
	ended      chan struct{}
	stop       context.CancelFunc
	once       sync.Once
	release    func() error
	err        error
}

// InProcess returns a backend that runs serve in this process, with one message on each line,
// until its input ends. release is called by the first Close, after serve has returned.
func InProcess(ctx context.Context, serve func(ctx context.Context, in io.Reader, out io.Writer) error,
	release func() error) Backend {
	ctx, stop := context.WithCancel(ctx)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &pipes{fromServer: fromServer, toServer: toServer, ended: make(chan struct{}), stop: stop, release: release}
	go func() {
		defer close(p.ended)
		err := serve(ctx, in, out)
		in.CloseWithError(io.ErrClosedPipe)
		out.CloseWithError(err) // nil counts as the end
	}()
	return p
}

// Read reads what the server writes.
func (p *pipes) Read(b []byte) (int, error) { return p.fromServer.Read(b) }

// Write writes what the server reads.
func (p *pipes) Write(b []byte) (int, error) { return p.toServer.Write(b) }

// CloseWrite ends the server's input.
func (p *pipes) CloseWrite() error { return p.toServer.Close() }

// Close ends the server and releases what it used.
func (p *pipes) Close() error {
	p.once.Do(func() {
		p.stop()
		p.toServer.Close()
		p.fromServer.Close()
		<-p.ended
		p.err = p.release()
	})
	return p.err
}
