package cli

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

// terminal is the controlling terminal of this process: where a person is, if
// one is, wherever the standard streams lead.
type terminal struct {
	file *os.File
	keys chan byte // what is typed while it is asked for; closed with the terminal

	mu     sync.Mutex    // guards what follows
	before *unix.Termios // how the terminal was; nil while nothing is asked
}

// maxTyped is how many keys wait to be looked at; more are dropped.
const maxTyped = 64

// openTerminal opens the controlling terminal, when this process is in its
// foreground. The caller closes it.
func openTerminal() (*terminal, error) {
	file, err := tty.Open()
	if err != nil {
		return nil, err
	}
	t := &terminal{file: file, keys: make(chan byte, maxTyped)}
	go t.read()
	return t, nil
}

// read passes on what is typed until the terminal is closed or hangs up.
func (t *terminal) read() {
	defer close(t.keys)
	buffer := make([]byte, 1)
	for {
		n, err := t.file.Read(buffer)
		if n == 1 {
			t.typed(buffer[0])
		}
		if err != nil {
			return
		}
	}
}

// typed takes a key, where one is asked for.
func (t *terminal) typed(key byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		return
	}
	select {
	case t.keys <- key:
	default:
	}
}

// Write prints.
func (t *terminal) Write(text []byte) (int, error) { return t.file.Write(text) }

var _ io.Writer = (*terminal)(nil)

// begin makes the terminal give single keys, and forgets what was typed before:
// a person answers what they have seen.
func (t *terminal) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		before, err := tty.Control(t.file, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) })
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

func (t *terminal) set(to *unix.Termios) error {
	_, err := tty.Control(t.file, func(fd int) (struct{}, error) {
		return struct{}{}, unix.IoctlSetTermios(fd, unix.TCSETS, to)
	})
	if err != nil {
		return fmt.Errorf("asking at the terminal: %w", err)
	}
	return nil
}

// end gives the terminal back as it was.
func (t *terminal) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		t.set(t.before) // a terminal that has hung up needs nothing
		t.before = nil
	}
}

// close ends the terminal. It is safe to call while a key is awaited.
func (t *terminal) close() {
	t.end()
	t.file.Close()
	for range t.keys { // until the reader has ended
	}
}

// key waits for one of the wanted keys, in either case; other keys are not
// heeded. What a terminal itself answers to a query, which any process of the user
// can make it do by writing to it, is no key: such sequences begin with an escape.
// It returns the error of ctx when that ends first, and io.EOF when the terminal
// hangs up.
func (t *terminal) key(ctx context.Context, wanted string) (byte, error) {
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

// sequence follows control sequences (ECMA-48) through what a terminal sends. The
// zero value is outside of any.
type sequence int

const (
	outside   sequence = iota
	escaped            // after an escape
	control            // within CSI …, until its final byte
	single             // after SS2 or SS3: one character follows
	text               // within a string such as OSC or DCS, until BEL or ST
	textAfter          // within one, after an escape
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
	case *s == control && 0x40 <= b && b <= 0x7e, *s == single, *s == textAfter && b == '\\', (*s == text || *s == textAfter) && b == bell:
		*s = outside
	case *s == textAfter:
		*s = text
	case *s == outside:
		return s.introduce8(b)
	}
	return true
}

// introduce heeds the byte after an escape.
func (s *sequence) introduce(b byte) {
	switch b {
	case '[':
		*s = control
	case 'N', 'O':
		*s = single
	case ']', 'P', 'X', '^', '_':
		*s = text
	default:
		if b < 0x20 || b > 0x2f { // else an intermediate byte, and more follows
			*s = outside
		}
	}
}

// introduce8 heeds introducers of one byte; it reports whether b is one.
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
