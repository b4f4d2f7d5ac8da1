package wire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/wire"
)

// held starts a conversation whose requests wait until answer is closed, and returns its socket.
func held(t *testing.T, answer <-chan struct{}, reopened ...wire.Request) (*wire.Conversation, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewConversation(func(ctx context.Context, req wire.Request) (any, error) {
		if req.Method == "fast" {
			return "at once", nil
		}
		select {
		case <-answer:
			return json.RawMessage(req.ID), nil
		case <-ctx.Done():
			return "cancelled", nil
		}
	})
	c.Reopen(reopened)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, path
}

// hold holds the conversation once want requests are open.
func hold(t *testing.T, c *wire.Conversation, want int) *wire.Held {
	t.Helper()
	for {
		h, open, err := c.Hold(t.Context())
		if err == nil && open == want {
			return h
		}
		if err == nil {
			h.Release()
		} else if !errors.Is(err, wire.ErrNotQuiet) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A request goes on while no connection is there, and its answer goes to the one that reclaims it, once.
func TestAnswersAreReclaimed(t *testing.T) {
	answer := make(chan struct{})
	c, path := held(t, answer)
	before := dial(t, path)
	fmt.Fprintln(before, `{"jsonrpc":"2.0","id":1,"method":"slow","params":{}}`)
	fmt.Fprintln(before, `{"jsonrpc":"2.0","id":2,"method":"slow","params":{}}`)
	hold(t, c, 2).Detach()
	if text, err := bufio.NewReader(before).ReadString('\n'); err == nil {
		t.Errorf("a detached connection received %q", text)
	}

	after := dial(t, path)
	answers := bufio.NewReader(after)
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":1,"method":"run/reclaim","params":{}}`)
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":3,"method":"fast","params":{}}`)
	if got := line(t, answers); got != `{"jsonrpc":"2.0","id":3,"result":"at once"}`+"\n" {
		t.Errorf("got %s", got)
	}
	close(answer)
	if got := line(t, answers); got != `{"jsonrpc":"2.0","id":1,"result":1}`+"\n" {
		t.Errorf("got %s", got)
	}
	// One that was answered before it was reclaimed.
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":2,"method":"run/reclaim","params":{}}`)
	if got := line(t, answers); got != `{"jsonrpc":"2.0","id":2,"result":2}`+"\n" {
		t.Errorf("got %s", got)
	}
	for _, id := range []string{"1", "2", "9"} {
		fmt.Fprintf(after, `{"jsonrpc":"2.0","id":%s,"method":"run/reclaim","params":{}}`+"\n", id)
		var got struct{ Error *struct{ Code int } }
		if text := line(t, answers); json.Unmarshal([]byte(text), &got) != nil || got.Error == nil {
			t.Errorf("request %s was reclaimed again: %s", id, text)
		}
	}
}

// awaitBytes returns when there is something to read, and reads nothing.
func awaitBytes(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A conversation is not held while a message is under way, and goes on as if nothing had been tried.
func TestHoldNeedsQuiet(t *testing.T) {
	answer := make(chan struct{})
	c, path := held(t, answer)
	conn := dial(t, path)
	refused := func(why string) {
		t.Helper()
		h, _, err := c.Hold(t.Context())
		if err == nil {
			h.Release()
		}
		if !errors.Is(err, wire.ErrNotQuiet) {
			t.Errorf("%s: got %v, want ErrNotQuiet", why, err)
		}
	}
	fmt.Fprint(conn, `{"jsonrpc":"2.0","id":1,"meth`)
	refused("half a frame")
	fmt.Fprintln(conn, `od":"fast","params":{}}`)
	reader := bufio.NewReader(conn)
	line(t, reader)
	hold(t, c, 0).Release()

	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"fast","params":{}}`)
	awaitBytes(t, conn)
	refused("an answer that was not read")
	line(t, reader)
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":5,"method":"slow","params":{}}`)
	hold(t, c, 1).Release()
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":5,"method":"slow","params":{}}`)
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":6,"method":"fast","params":{}}`)
	line(t, reader) // both that came before were read by now
	refused("two requests with one ID")
	close(answer)
	line(t, reader)
	line(t, reader)
	hold(t, c, 0).Release()
}

// A request that was reclaimed is cancelled when its new connection ends.
func TestReclaimedRequestsEndWithTheirConnection(t *testing.T) {
	c, path := held(t, nil)
	fmt.Fprintln(dial(t, path), `{"jsonrpc":"2.0","id":1,"method":"slow","params":{}}`)
	hold(t, c, 1).Detach()
	after := dial(t, path)
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":1,"method":"run/reclaim","params":{}}`)
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":2,"method":"fast","params":{}}`)
	line(t, bufio.NewReader(after))
	after.Close()
	hold(t, c, 0).Release()
}

// The requests of a conversation that another process has detached are handled again, and can be reclaimed.
func TestRequestsAreReopened(t *testing.T) {
	answer := make(chan struct{})
	former, path := held(t, answer)
	fmt.Fprintln(dial(t, path), `{"jsonrpc":"2.0","id":"a","method":"slow","params":{"n":1}}`)
	hold(t, former, 1).Detach()
	open := former.Open()
	if len(open) != 1 || string(open[0].ID) != `"a"` || open[0].Method != "slow" ||
		string(open[0].Params) != `{"n":1}` {
		t.Fatalf("got %+v", open)
	}
	c, path := held(t, answer, append(open, wire.Request{ID: json.RawMessage("2"), Method: "fast"})...)
	after := dial(t, path)
	answers := bufio.NewReader(after)
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":2,"method":"run/reclaim","params":{}}`)
	if got := line(t, answers); got != `{"jsonrpc":"2.0","id":2,"result":"at once"}`+"\n" {
		t.Errorf("got %s", got)
	}
	close(answer)
	fmt.Fprintln(after, `{"jsonrpc":"2.0","id":"a","method":"run/reclaim","params":{}}`)
	if got := line(t, answers); got != `{"jsonrpc":"2.0","id":"a","result":"a"}`+"\n" {
		t.Errorf("got %s", got)
	}
	hold(t, c, 0).Release()
}
