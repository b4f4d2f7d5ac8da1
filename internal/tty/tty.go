// Package tty opens the controlling terminal of this process, where a person can be asked a question.
package tty

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNone is returned if this process has no terminal, or runs in the background of its terminal.
var ErrNone = errors.New("there is no terminal here")

// Open opens the controlling terminal of this process, even if the standard streams are
// redirected. It returns ErrNone if there is none, or if the process is not in its
// foreground. The caller must close the file.
func Open() (*os.File, error) {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, ErrNone
	}
	group, err := Control(file, func(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	if err != nil || group != unix.Getpgrp() {
		return nil, errors.Join(ErrNone, file.Close())
	}
	return file, nil
}

// Is reports whether a file is a terminal.
func Is(file *os.File) bool {
	_, err := Control(file, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) })
	return err == nil
}

// Control calls f with the descriptor of a file. Unlike after File.Fd, Close still
// interrupts a read of the file.
func Control[T any](file *os.File, f func(fd int) (T, error)) (T, error) {
	var result T
	raw, err := file.SyscallConn()
	if err != nil {
		return result, err
	}
	var asked error
	err = raw.Control(func(fd uintptr) { result, asked = f(int(fd)) })
	return result, errors.Join(err, asked)
}
