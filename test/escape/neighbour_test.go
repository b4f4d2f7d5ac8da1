package escape_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// beatTimeout bounds one piece of the neighbour's work while bombs go off
// around it. On an idle machine it takes some 30 ms.
const beatTimeout = 20 * time.Second

// neighbour is a sandbox of another run that exists during the attacks. It stores a
// secret in every place that code can use, and does some work on request: a process, a
// file, some memory.
type neighbour struct {
	flag   string
	system *system
	ended  chan string // the neighbour's line, which comes too early
	asked  chan struct{}
	done   chan string // the neighbour's reports
}

// neighbourProgram keeps its secret everywhere, then works whenever the tool
// returns. The first call is made when everything is in place.
const neighbourProgram = `
import asyncio, os, socket, subprocess, threading
from client.mcp_client import call_tool
flag = "{{flag}}"
for directory in ("/workspace", "/tmp", "/dev/shm"):
    open(directory + "/neighbour", "w").write(flag)
os.environ["NEIGHBOUR"] = flag
def serve(family, address):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    while True:
        listener.accept()[0].sendall(flag.encode())
for family, address in ((socket.AF_INET, ("127.0.0.1", 7777)), (socket.AF_UNIX, "\0neighbour")):
    threading.Thread(target=serve, args=(family, address), daemon=True).start()
child = subprocess.Popen(["/bin/sh", "-c", "read line", flag], stdin=subprocess.PIPE)
beat = 0
while True:
    answer = await call_tool(server_id="demo", name="beat", arguments={"done": beat})
    assert answer["ok"], answer
    if answer["data"] == "stop":
        break
    beat += 1
    assert subprocess.run(["/bin/sh", "-c", "echo $((6 * 7))"], capture_output=True).stdout == b"42\n"
    with open("/workspace/work", "wb") as file:
        file.write(bytes(4 << 20))
    os.remove("/workspace/work")
    assert len(bytearray(16 << 20)) == 16 << 20 and child.poll() is None
`

// settle starts the neighbour and waits until it is ready.
func settle(t *testing.T, l *lab) *neighbour {
	t.Helper()
	n := &neighbour{flag: newFlag(), ended: make(chan string, 1), asked: make(chan struct{}), done: make(chan string)}
	n.system = l.open(t, n)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		outcome, err := n.system.orders.Run(ctx, orchestrator.Request{
			Language: "python", Code: []byte(strings.ReplaceAll(neighbourProgram, "{{flag}}", n.flag)),
			Caller: caller.Caller{Principal: "neighbour", Kind: caller.Local, Session: "neighbour"},
		})
		if err != nil {
			n.ended <- err.Error()
			return
		}
		line, _ := outcome.Envelope.Line()
		n.ended <- string(line) + outcome.Stderr
	}()
	t.Cleanup(func() {
		n.leave(t)
		cancel()
		if left, err := n.system.close(l); err != nil || len(left) > 0 {
			t.Errorf("closing the neighbour: got %v and %q left, want nothing", err, left)
		}
	})
	select {
	case <-n.done:
	case line := <-n.ended:
		n.ended <- line
		t.Fatalf("the neighbour ended: %s", line)
	}
	return n
}

// leave lets the neighbour end by itself, which it must do without an error.
func (n *neighbour) leave(t *testing.T) {
	t.Helper()
	close(n.asked)
	select {
	case line := <-n.ended:
		if !strings.Contains(line, `"ok":true`) {
			t.Errorf("the neighbour ended with %s, want no error", line)
		}
	case <-time.After(beatTimeout):
		t.Errorf("the neighbour has not ended within %v", beatTimeout)
	}
}

// Call is the neighbour's tool: it reports the finished work and blocks until there is
// more.
func (n *neighbour) Call(ctx context.Context, _, _ string, arguments json.RawMessage) (json.RawMessage, error) {
	select {
	case n.done <- string(arguments):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case _, more := <-n.asked:
		if !more {
			return textResult("stop")
		}
		return textResult("go on")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work has the neighbour do one piece of work and returns an error when it does
// not get done. One at a time: the caller takes turns.
func (n *neighbour) work() error {
	timer := time.NewTimer(beatTimeout)
	defer timer.Stop()
	select {
	case n.asked <- struct{}{}:
	case line := <-n.ended:
		n.ended <- line
		return fmt.Errorf("the neighbour has ended: %s", line)
	case <-timer.C:
		return errors.New("the neighbour does not ask for work any more")
	}
	select {
	case <-n.done:
		return nil
	case line := <-n.ended:
		n.ended <- line
		return fmt.Errorf("the neighbour has ended: %s", line)
	case <-timer.C:
		return fmt.Errorf("the neighbour has not done its work within %v", beatTimeout)
	}
}
