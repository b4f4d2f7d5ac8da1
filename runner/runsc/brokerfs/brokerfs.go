// Package brokerfs serves the only host file system that a sandbox can reach: a directory
// with one unix socket, the broker's. It implements lisafs, the protocol between gVisor's
// kernel and its file servers, in Airlock's process, so that a sandbox needs no file
// server process and only Airlock opens files.
//
// The peer is untrusted. A malformed request can only make that request fail: the server
// holds no paths and no state that grows, and copies every request before parsing it.
package brokerfs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// SocketName is the name of the one file.
const SocketName = "broker.sock"

// Server serves one sandbox.
type Server struct {
	dial func() (int, error)
	conn *net.UnixConn
	wait sync.WaitGroup

	mu      sync.Mutex
	channel *channel
	closed  bool
}

// Start returns a server and the end of its connection that belongs to gVisor's
// kernel. dial connects to the broker and returns a non-blocking descriptor,
// which the server hands over and closes; it may be called concurrently.
func Start(dial func() (int, error)) (*Server, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to a sandbox's kernel: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "lisafs"), os.NewFile(uintptr(pair[1]), "lisafs")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("connecting to a sandbox's kernel: %w", err)
	}
	s := &Server{dial: dial, conn: conn.(*net.UnixConn)}
	s.wait.Go(s.serve)
	return s, theirs, nil
}

// Close ends the server. The sandbox must be dead, or it could keep the server
// waiting. Calling it twice is fine.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return
	}
	s.conn.Close()
	if s.channel != nil { // none is made after this
		s.channel.shut()
	}
	s.wait.Wait()
	if s.channel != nil {
		s.channel.free()
	}
}

// serve answers requests on the socket until it closes, or makes no sense.
func (s *Server) serve() {
	defer s.conn.Close()
	buffer := make([]byte, socketHeader+maxMessage)
	for {
		request, err := readMessage(s.conn, buffer)
		if err != nil {
			return
		}
		answer := s.handle(request)
		err = writeMessage(s.conn, answer)
		closeFDs(answer.fds)
		if err != nil {
			return
		}
	}
}

// openChannel makes the one channel of shared memory that a kernel insists on.
func (s *Server) openChannel() (message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel != nil || s.closed {
		return message{}, unix.ENOMEM // the kernel takes it for "that many are enough"
	}
	c, fds, err := newChannel()
	if err != nil {
		return message{}, err
	}
	s.channel = c
	s.wait.Go(func() { c.serve(s.handle) })
	return message{kind: kindChannel, payload: encode(int64(0), uint64(windowSize)), fds: fds}, nil
}

// connect connects the code inside to the broker.
func (s *Server) connect(payload []byte) (message, error) {
	var req struct {
		FD     uint64
		Socket uint32
		_      uint32
	}
	if err := decode(payload, &req); err != nil {
		return message{}, err
	}
	if req.FD != socketFD {
		return message{}, unix.ECONNREFUSED
	}
	// 0 accepts any type.
	if req.Socket != unix.SOCK_STREAM && req.Socket != 0 {
		return message{}, unix.EPROTOTYPE
	}
	fd, err := s.dial()
	if err != nil {
		return message{}, unix.ECONNREFUSED
	}
	return message{kind: kindConnect, fds: []int{fd}}, nil
}

// errno is what the peer learns of an error: a number and no words.
func errno(err error) unix.Errno {
	if number, ok := errors.AsType[unix.Errno](err); ok {
		return number
	}
	return unix.EIO
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
