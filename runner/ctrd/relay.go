package ctrd

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner/posture"
)

// relay carries one output of the guest on from the shim to Airlock. What the
// guest writes goes through its own pipe, the shim, and a named pipe, so it
// cannot be seen from here whether something is still on its way. A flush finds out: it
// sends a random mark through all of that and waits for it to arrive. The guest
// cannot read what is in its own output, so it cannot know the mark.
type relay struct {
	from    *os.File // the named pipe
	into    *os.File
	out     *os.File // the other end of into, which the caller reads
	mark    []byte
	begun   bool
	arrived chan struct{} // buffered, capacity 1
	done    chan struct{} // closed when the stream has ended

	mu sync.Mutex // held by a flush: one at a time
}

// newRelay returns a relay that has not begun.
func newRelay(from *os.File) (*relay, error) {
	out, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// No text begins like this, so text is never held back (see pass).
	mark := append([]byte{0xff, 0}, make([]byte, 30)...)
	rand.Read(mark[2:]) // never fails: crypto/rand aborts the program instead
	return &relay{from: from, into: into, out: out, mark: mark, arrived: make(chan struct{}, 1),
		done: make(chan struct{})}, nil
}

// begin starts to carry, until from ends or is closed.
func (r *relay) begin() {
	r.begun = true
	go r.carry()
}

func (r *relay) carry() {
	defer close(r.done)
	defer r.into.Close()
	buffer := make([]byte, 32<<10)
	held := 0
	for {
		n, err := r.from.Read(buffer[held:])
		held = r.pass(buffer[:held+n], err != nil)
		if err != nil {
			return
		}
	}
}

// pass forwards data without marks. Unless last is set, an incomplete mark at the end is
// moved to the front of data, and pass returns its length. If the reader is gone, the data
// is discarded, so that the shim can still end.
func (r *relay) pass(data []byte, last bool) (held int) {
	rest := data
	for {
		before, after, found := bytes.Cut(rest, r.mark)
		if !found {
			break
		}
		_, _ = r.into.Write(before)
		rest = after
		select {
		case r.arrived <- struct{}{}:
		default: // the flush has ended
		}
	}
	keep := 0
	if !last {
		for keep = min(len(rest), len(r.mark)-1); !bytes.HasPrefix(r.mark, rest[len(rest)-keep:]); keep-- {
		}
	}
	_, _ = r.into.Write(rest[:len(rest)-keep])
	return copy(data, rest[len(rest)-keep:])
}

// flush waits until everything has been passed on that was written before to the
// guest's own pipe, to which guest opens another end. Where that is over, it
// waits for the stream to end, which it then soon does.
func (r *relay) flush(ctx context.Context, guest func() (*os.File, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.arrived: // of a flush that was given up
	default:
	}
	if err := r.send(ctx, guest); err != nil && !posture.Gone(err) && !errors.Is(err, unix.EPIPE) {
		return err
	}
	select {
	case <-r.arrived:
		return nil
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes the mark to the guest's own pipe.
func (r *relay) send(ctx context.Context, guest func() (*os.File, error)) error {
	pipe, err := guest()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	// Short enough to be written as a whole (pipe(7), PIPE_BUF).
	_, err = pipe.Write(r.mark)
	return errors.Join(err, pipe.Close())
}

// close ends the relay; readers see the end of the stream.
func (r *relay) close() {
	_ = r.from.Close()
	_ = r.out.Close()
	if r.begun {
		<-r.done
	} else {
		_ = r.into.Close()
	}
}

// openStream opens another end of a pipe that the process of the directory holds
// under the number fd, to write to it. The directory is its /proc/PID/fd, which leads
// to no other process when this one has ended.
func openStream(directory *os.File, fd int) (*os.File, error) {
	opened, err := unix.Openat(int(directory.Fd()), fmt.Sprint(fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(opened, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		unix.Close(opened)
		return nil, errors.Join(err, fmt.Errorf("descriptor %d of the kernel is not a pipe", fd))
	}
	return os.NewFile(uintptr(opened), "guest"), nil
}
