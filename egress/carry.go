package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// carry connects to a host, completes the sandbox's handshake and copies bytes in both directions. It reports a failure
// in the Outcome. local is the end of the sandbox, closed; nil if there is none.
func (n *Network) carry(ctx context.Context, r *tcp.ForwarderRequest, host Host) (o Outcome, local *endpoint) {
	remote, err := n.opts.Dial(ctx, "tcp", host.String())
	if err != nil {
		r.Complete(true)
		o.Err = err
		n.refuse(fmt.Sprintf("%s cannot be connected to: %s", host, reasonOf(err)))
		return o, nil
	}
	defer remote.Close()
	o.Address, _ = netip.ParseAddrPort(remote.RemoteAddr().String())
	local, ok := n.endpoint(ctx, r)
	if !ok {
		o.Err = errors.New("the sandbox gave up the connection")
		return o, nil
	}
	defer local.Close()
	defer context.AfterFunc(ctx, func() { local.Close(); remote.Close() })()
	s := &splice{n: n, host: host, local: local, remote: remote}
	s.touch()
	err = s.run()
	o.Sent, o.Received = s.sent.Load(), s.received.Load()
	if err != nil && !errors.Is(err, io.EOF) {
		o.Err = err
		n.refuse(fmt.Sprintf("%s: %v", host, err))
	}
	if cause := context.Cause(ctx); cause != nil {
		o.Err = cause
	}
	return o, local
}

// reasonOf returns why a host cannot be connected to, without addresses of the host's network.
func reasonOf(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, reach.ErrNearer), errors.Is(err, reach.ErrLocal):
		return "its address is not on the internet"
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer"
	}
	return "it refuses the connection or is unreachable"
}

// splice is a connection between a sandbox and a host.
type splice struct {
	n              *Network
	host           Host
	local          *endpoint
	remote         net.Conn
	sent, received atomic.Int64
}

// touch postpones the deadlines of both ends.
func (s *splice) touch() {
	deadline := time.Now().Add(s.n.opts.Limits.Idle)
	_ = s.local.SetDeadline(deadline)
	_ = s.remote.SetDeadline(deadline)
}

// run checks the first bytes of the program and carries the connection.
func (s *splice) run() error {
	_ = s.local.SetReadDeadline(time.Now().Add(s.n.opts.Limits.Handshake))
	from := bufio.NewReaderSize(s.local, 32<<10)
	first, err := from.Peek(1)
	if err != nil {
		return err
	}
	if first[0] == recordHandshake {
		hello, err := s.hello(from)
		if err != nil {
			return err
		}
		return s.both(func() error { return s.records(hello, from) })
	}
	return s.both(func() error { return s.requests(from) })
}

// both runs upstream and copies the answers until both have ended. If one direction fails, it ends the other.
func (s *splice) both(upstream func() error) error {
	s.touch()
	up := make(chan error, 1)
	go func() {
		err := upstream()
		if err != nil {
			s.local.Close()
			s.remote.Close()
		} else if half, ok := s.remote.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		up <- err
	}()
	down := s.copy(s.local, s.remote, &s.received, &s.n.received)
	if down == nil {
		_ = s.local.CloseWrite()
	} else {
		s.local.Close()
		s.remote.Close()
	}
	err := <-up
	if err == nil || errors.Is(err, net.ErrClosed) {
		err = down
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// copy copies bytes within the limits and counts them.
func (s *splice) copy(to io.Writer, from io.Reader, counts ...*atomic.Int64) error {
	buf := make([]byte, 32<<10)
	for {
		size, err := from.Read(buf)
		if size > 0 {
			if limit := s.count(int64(size), counts); limit != nil {
				return limit
			}
			s.touch()
			if _, err := to.Write(buf[:size]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// send sends bytes of the program to the host, within the limits.
func (s *splice) send(b []byte) (int, error) {
	if err := s.count(int64(len(b)), []*atomic.Int64{&s.sent, &s.n.sent}); err != nil {
		return 0, err
	}
	s.touch()
	return s.remote.Write(b)
}

// count adds bytes to the counts of the connection and of the sandbox, in this order.
func (s *splice) count(size int64, counts []*atomic.Int64) error {
	counts[0].Add(size)
	if counts[1].Add(size) > s.n.opts.Limits.Bytes {
		return fmt.Errorf("%w: %d bytes in one direction", errLimit, s.n.opts.Limits.Bytes)
	}
	return nil
}

// maxHeader bounds the header of a request, in bytes.
const maxHeader = 64 << 10

// requests forwards HTTP/1 requests (RFC 9112) one by one. Each is parsed and written anew, so the host reads what was
// checked.
func (s *splice) requests(from *bufio.Reader) error {
	bounded := &boundedHeader{from: from}
	reader := bufio.NewReader(bounded)
	for {
		bounded.left = maxHeader
		request, err := http.ReadRequest(reader)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("only TLS and HTTP/1 are carried: %w", err)
		}
		if err := s.checkRequest(request); err != nil {
			return err
		}
		bounded.left = -1
		if request.Header.Get("User-Agent") == "" {
			request.Header.Set("User-Agent", "") // otherwise Write adds that of Go
		}
		if err := request.Write(writerFunc(s.send)); err != nil {
			return err
		}
		_ = request.Body.Close()
	}
}

// checkRequest returns an error if a request is for another host or changes the protocol.
func (s *splice) checkRequest(r *http.Request) error {
	name, port := r.Host, ""
	if host, p, err := net.SplitHostPort(r.Host); err == nil {
		name, port = host, p
	}
	switch {
	case r.Method == http.MethodConnect:
		return errors.New("CONNECT is refused")
	case !strings.EqualFold(strings.TrimSuffix(name, "."), s.host.Name),
		port != "" && port != fmt.Sprint(s.host.Port):
		return fmt.Errorf("the Host of a request is %.253q, not %q", r.Host, s.host.Name)
	case r.Header.Get("Upgrade") != "":
		return errors.New("a request with Upgrade is refused")
	}
	return nil
}

// boundedHeader ends after left bytes; negative means no bound.
type boundedHeader struct {
	from *bufio.Reader
	left int
}

// Read implements io.Reader.
func (b *boundedHeader) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("the header of a request is too large")
	}
	if b.left > 0 && len(p) > b.left {
		p = p[:b.left]
	}
	size, err := b.from.Read(p)
	if b.left > 0 {
		b.left -= size
	}
	return size, err
}

type writerFunc func([]byte) (int, error)

// Write calls f.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
