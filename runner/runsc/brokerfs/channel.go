package brokerfs

import (
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// windowSize is the shared memory of a channel: its header, the header of a
// message and the longest payload, in whole pages.
const windowSize = 2 * 4096

const (
	windowHeader  = 16 // state (4 bytes), length of the data (4), unused
	channelHeader = 4  // kind (2), number of descriptors (1), unused
)

// Whose turn it is (gVisor, pkg/flipcall).
const (
	turnKernel = 0
	turnServer = 1
	turnOver   = 2
)

// The operations of futex(2) that are used: between processes, not private.
const (
	futexWait = 0
	futexWake = 1
)

// greeting is the first message of both sides.
const greeting = "{}\n"

// channel answers requests through memory that it shares with the kernel: the
// two take turns, and the one that waits sleeps on a futex.
type channel struct {
	window []byte
	rights int // a socket for descriptors
	over   atomic.Bool
}

// newChannel returns a channel and what the kernel needs of it: the memory and
// the other end of the socket.
func newChannel() (*channel, []int, error) {
	memory, err := unix.MemfdCreate("airlock-channel", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, err
	}
	window, err := mapWindow(memory)
	if err != nil {
		unix.Close(memory)
		return nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		unix.Close(memory)
		return nil, nil, errors.Join(err, unix.Munmap(window))
	}
	return &channel{window: window, rights: pair[0]}, []int{memory, pair[1]}, nil
}

// mapWindow fixes the size before the memory is shared: a peer that could
// shrink it could crash us.
func mapWindow(memory int) ([]byte, error) {
	if err := unix.Ftruncate(memory, windowSize); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(memory), unix.F_ADD_SEALS,
		unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, err
	}
	return unix.Mmap(memory, 0, windowSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (c *channel) state() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&c.window[0]))
}

func (c *channel) length() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&c.window[4]))
}

func (c *channel) futex(operation, value int) {
	// Errors mean that the value has changed or a signal came: the caller looks again.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&c.window[0])), uintptr(operation), uintptr(value),
		0, 0, 0)
}

// await sleeps until it is our turn, and reports whether it ever will be.
func (c *channel) await() bool {
	for !c.over.Load() {
		switch c.state().Load() {
		case turnServer:
			return true
		case turnKernel:
			c.futex(futexWait, turnKernel)
		default:
			return false
		}
	}
	return false
}

// hand gives the turn to the kernel.
func (c *channel) hand(size int) bool {
	c.length().Store(uint32(size))
	if !c.state().CompareAndSwap(turnServer, turnKernel) {
		return false
	}
	c.futex(futexWake, 1)
	return true
}

// shut ends the channel. The kernel must be dead: a living one could undo it.
func (c *channel) shut() {
	c.over.Store(true)
	c.state().Store(turnOver)
	c.futex(futexWake, math.MaxInt32)
}

// free frees the memory, once serving has ended and shut has returned.
func (c *channel) free() {
	unix.Close(c.rights)
	_ = unix.Munmap(c.window) // the mapping is ours and whole
}

// serve answers requests until the channel ends.
func (c *channel) serve(handle func(message) message) {
	data := c.window[windowHeader:]
	if !c.await() || !c.hand(copy(data, greeting)) {
		return
	}
	request := make([]byte, len(data))
	for c.await() {
		size := int(c.length().Load())
		if size < channelHeader || size > channelHeader+maxMessage {
			c.state().Store(turnOver)
			c.futex(futexWake, math.MaxInt32)
			return
		}
		copy(request, data[:size]) // the peer may change data at any time
		answer := handle(message{kind: binary.LittleEndian.Uint16(request), payload: request[channelHeader:size]})
		sent := c.send(answer.fds)
		closeFDs(answer.fds)
		binary.LittleEndian.PutUint16(data, answer.kind)
		data[2], data[3] = sent, 0
		if !c.hand(channelHeader + copy(data[channelHeader:], answer.payload)) {
			return
		}
	}
}

// send passes descriptors on and returns how many went through.
func (c *channel) send(fds []int) uint8 {
	for i, fd := range fds {
		// Without waiting: a peer that does not take what it asked for gets none.
		if err := unix.Sendmsg(c.rights, nil, unix.UnixRights(fd), nil,
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err != nil {
			return uint8(i)
		}
	}
	return uint8(len(fds))
}
