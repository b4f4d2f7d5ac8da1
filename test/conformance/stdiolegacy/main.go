// Command stdiolegacy starts another one and makes it an MCP server of a revision
// before 2026-07-28 on stdin and stdout: it answers server/discover itself, as one
// that does not know the method.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("the arguments are a program and its arguments")
	}
	program := exec.Command(os.Args[1], os.Args[2:]...)
	program.Stderr = os.Stderr
	in, err := program.StdinPipe()
	if err != nil {
		return err
	}
	out, err := program.StdoutPipe()
	if err != nil {
		return err
	}
	if err := program.Start(); err != nil {
		return err
	}
	to := &lines{w: os.Stdout}
	go func() {
		_ = copyLines(os.Stdin, &lines{w: in}, to) // the end of either is the end of both
		in.Close()
	}()
	if err := copyLines(out, to, nil); err != nil {
		return err
	}
	return program.Wait()
}

// lines writes whole lines, from several goroutines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(line)
	return err
}

// copyLines copies messages. If refusals is not nil, it answers server/discover there
// with an error.
func copyLines(from io.Reader, to, refusals *lines) error {
	reader := bufio.NewReader(from)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		target := to
		if refusals != nil && json.Unmarshal(line, &message) == nil && message.Method == "server/discover" {
			line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+
				"\n", message.ID)
			target = refusals
		}
		if err := target.write(line); err != nil {
			return err
		}
	}
}
