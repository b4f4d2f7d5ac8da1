package verb

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/tty"
)

// Terminal is the controlling terminal of this process. A person can be reached through it even
// if the standard streams are redirected.
type Terminal struct {
	file *os.File
	keys chan byte // the keys that are typed while a question is shown; closed with the terminal

	mu     sync.Mutex    // guards the following fields
	before *unix.Termios // the settings to restore; nil while no question is shown
}

// maxTyped is the number of keys that are buffered. Further keys are dropped.
const maxTyped = 64

// OpenTerminal opens the controlling terminal if this process is in its foreground. The caller
// must close it.
func OpenTerminal() (*Terminal, error) {
	file, err := tty.Open()
	if err != nil {
		return nil, err
	}
	t := &Terminal{file: file, keys: make(chan byte, maxTyped)}
	go t.read()
	return t, nil
}

// read buffers the keys that are typed while a question is shown, until the terminal is closed or hangs up. A key is
// read with mu held, so that none is read before Begin and buffered after it.
func (t *Terminal) read() {
	defer close(t.keys)
	terminal, err := t.file.SyscallConn()
	if err != nil {
		return
	}
	key := make([]byte, 1)
	for {
		var n int
		var failed error
		err := terminal.Read(func(fd uintptr) (done bool) {
			t.mu.Lock()
			defer t.mu.Unlock()
			n, failed = unix.Read(int(fd), key)
			if n == 1 && t.before != nil {
				select {
				case t.keys <- key[0]:
				default:
				}
			}
			return failed != unix.EAGAIN
		})
		if err != nil || n == 0 || failed != nil && failed != unix.EINTR {
			return
		}
	}
}

// Write writes text to the terminal.
func (t *Terminal) Write(text []byte) (int, error) { return t.file.Write(text) }

var _ io.Writer = (*Terminal)(nil)

// Begin makes the terminal return single keys, and drops keys that were typed before, because a
// person can answer only a question that is shown.
func (t *Terminal) Begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		before, err := tty.Control(t.file, func(fd int) (*unix.Termios,
			error) {
			return unix.IoctlGetTermios(fd, unix.TCGETS)
		})
		if err != nil {
			return fmt.Errorf("asking at the terminal: %w", err)
		}
		single := *before
		single.Lflag &^= unix.ICANON | unix.ECHO
		single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 1, 0
		if err := t.set(&single); err != nil {
			return err
		}
		t.before = before
	}
	_, err := tty.Control(t.file, func(fd int) (struct{}, error) {
		return struct{}{}, unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	})
	if err != nil {
		return fmt.Errorf("asking at the terminal: %w", err)
	}
	for {
		select {
		case _, ok := <-t.keys:
			if !ok {
				return io.EOF
			}
		default:
			return nil
		}
	}
}

func (t *Terminal) set(to *unix.Termios) error {
	_, err := tty.Control(t.file, func(fd int) (struct{}, error) {
		return struct{}{}, unix.IoctlSetTermios(fd, unix.TCSETS, to)
	})
	if err != nil {
		return fmt.Errorf("asking at the terminal: %w", err)
	}
	return nil
}

// End restores the settings of the terminal.
func (t *Terminal) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		t.set(t.before) // the error is ignored: the terminal may have hung up
		t.before = nil
	}
}

// Close closes the terminal. It may be called while key waits.
func (t *Terminal) Close() {
	t.End()
	t.file.Close()
	for range t.keys { // until the reader has ended
	}
}

// Key waits for one of the wanted keys, in upper or lower case, and ignores other keys. It skips
// escape sequences, because any process of the user can write a query to the terminal, and the
// terminal's reply is not typed by a person. If ctx ends first, key returns its error. If the
// Terminal hangs up, key returns io.EOF.
func (t *Terminal) Key(ctx context.Context, wanted string) (byte, error) {
	var sequence sequence
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case typed, ok := <-t.keys:
			if !ok {
				return 0, io.EOF
			}
			if sequence.takes(typed) {
				continue
			}
			if 'A' <= typed && typed <= 'Z' {
				typed += 'a' - 'A'
			}
			if strings.IndexByte(wanted, typed) >= 0 {
				return typed, nil
			}
		}
	}
}

// sequence parses the control sequences (ECMA-48) in the input of a terminal. The zero value is
// the state outside of a sequence.
type sequence int

const (
	outside   sequence = iota
	escaped            // after an escape
	control            // within CSI …, until its final byte
	single             // after SS2 or SS3: one character follows
	text               // within a string such as OSC or DCS, until BEL or ST
	textAfter          // within a string, after an escape
)

// takes reports whether a byte is part of a sequence.
func (s *sequence) takes(b byte) bool {
	const escape, bell, cancel, substitute = 0x1b, 0x07, 0x18, 0x1a
	switch {
	case b == cancel || b == substitute:
		*s = outside
	case b == escape && (*s == text || *s == textAfter):
		*s = textAfter
	case b == escape:
		*s = escaped
	case *s == escaped:
		s.introduce(b)
	case *s == control && 0x40 <= b && b <= 0x7e, *s == single, *s == textAfter && b == '\\',
		(*s == text || *s == textAfter) && b == bell:
		*s = outside
	case *s == textAfter:
		*s = text
	case *s == outside:
		return s.introduce8(b)
	}
	return true
}

// introduce handles the byte after an escape.
func (s *sequence) introduce(b byte) {
	switch b {
	case '[':
		*s = control
	case 'N', 'O':
		*s = single
	case ']', 'P', 'X', '^', '_':
		*s = text
	default:
		if b < 0x20 || b > 0x2f { // otherwise it is an intermediate byte, and more bytes follow
			*s = outside
		}
	}
}

// introduce8 handles introducers of one byte. It reports whether b is one.
func (s *sequence) introduce8(b byte) bool {
	switch b {
	case 0x9b:
		*s = control
	case 0x8e, 0x8f:
		*s = single
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		*s = text
	default:
		return false
	}
	return true
}
