package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
)

// Program is a process that a test talks with: it answers each line of its input with
// one line, and ends with its input.
type Program struct {
	In  io.WriteCloser
	Out *bufio.Reader
	Err *Output // the output to stderr, unless the command redirects it

	end func() error
}

// StartProgram starts one, which ends with the test. When it then ends otherwise than
// with status 0, and the test has not called End, the test fails.
func StartProgram(t testing.TB, command *exec.Cmd) *Program {
	t.Helper()
	p := &Program{Err: &Output{}}
	if command.Stderr == nil {
		command.Stderr = p.Err
	}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.In, p.Out = in, bufio.NewReader(out)
	ended := false
	end := sync.OnceValue(func() error {
		in.Close()
		return command.Wait()
	})
	p.end = func() error {
		ended = true
		return end()
	}
	t.Cleanup(func() {
		if err := end(); err != nil && !ended {
			t.Errorf("%s: %v\n%s", command.Path, err, p.Err)
		}
	})
	return p
}

// Ask sends a line and returns the line that answers it, both without their ends.
func (p *Program) Ask(line []byte) ([]byte, error) {
	_, written := p.In.Write(append(line[:len(line):len(line)], '\n'))
	answer, err := p.Out.ReadBytes('\n')
	if err := errors.Join(written, err); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.Err)
	}
	return answer[:len(answer)-1], nil
}

// End closes its input, waits for it, and returns what exec.Cmd.Wait did.
func (p *Program) End() error { return p.end() }
