package egress

import (
	"context"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// lingers is how long a closed connection may keep bytes that the sandbox does not take.
const lingers = 5 * time.Second

// endpoint is the sandbox's connection to the stack. Close may be called several times.
type endpoint struct {
	*gonet.TCPConn
	once sync.Once
	ep   tcpip.Endpoint
}

// endpoint completes the handshake with the sandbox, within Limits.Handshake.
func (n *Network) endpoint(ctx context.Context, r *tcp.ForwarderRequest) (*endpoint, bool) {
	var queue waiter.Queue
	done := make(chan struct{})
	defer close(done)
	go n.giveUp(ctx, &queue, done)
	ep, err := r.CreateEndpoint(&queue)
	if err != nil {
		r.Complete(true)
		return nil, false
	}
	r.Complete(false)
	return &endpoint{TCPConn: gonet.NewTCPConn(&queue, ep), ep: ep}, true
}

// giveUp ends the handshake of queue when ctx ends or Limits.Handshake is over. The stack itself repeats its answer for
// more than a minute, and Close would wait for that.
func (n *Network) giveUp(ctx context.Context, queue *waiter.Queue, done <-chan struct{}) {
	ctx, stop := context.WithTimeout(ctx, n.opts.Limits.Handshake)
	defer stop()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	for {
		queue.Notify(waiter.WritableEvents) // lost if the stack does not wait yet
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// Close closes the connection. Bytes that were written are still delivered.
func (e *endpoint) Close() (err error) {
	e.once.Do(func() { err = e.TCPConn.Close() })
	return err
}

// settle waits until the stack has no bytes of a closed connection. A sandbox that does not take them could otherwise
// fill the memory of the host with connections that do not count as open. It does nothing on nil.
func (e *endpoint) settle(ctx context.Context) {
	if e == nil {
		return
	}
	defer time.AfterFunc(lingers, e.ep.Abort).Stop()
	defer context.AfterFunc(ctx, e.ep.Abort)()
	if waits, ok := e.ep.(interface{ Wait() }); ok {
		waits.Wait()
	}
}
