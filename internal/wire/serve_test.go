package wire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// start serves an echo on a new socket and returns its path and how Serve ended.
func start(t *testing.T, ctx context.Context, handle wire.Handler) (path string, ended <-chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- wire.Serve(ctx, listener, handle) }()
	return path, done
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func echo(_ context.Context, req wire.Request) (any, error) {
	return map[string]json.RawMessage{req.Method: req.Params}, nil
}

func TestServeAnswersInAnyOrder(t *testing.T) {
	first := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	path, ended := start(t, ctx, func(ctx context.Context, req wire.Request) (any, error) {
		if req.Method == "slow" {
			<-first
		}
		return req.Method, nil
	})
	conn := dial(t, path)
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"slow","params":{}}`)
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":"b","method":"fast"}`)
	lines := bufio.NewScanner(conn)
	for i, want := range []string{`{"jsonrpc":"2.0","id":"b","result":"fast"}`,
		`{"jsonrpc":"2.0","id":1,"result":"slow"}`} {
		if !lines.Scan() {
			t.Fatalf("answer %d: connection ended", i)
		}
		if got := lines.Text(); got != want {
			t.Errorf("answer %d: got %s, want %s", i, got, want)
		}
		if i == 0 {
			close(first)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("after cancel: got %v, want nil", err)
	}
}

func TestServeEndsOnBrokenProtocol(t *testing.T) {
	tests := []struct {
		name, frame, want string
	}{
		{"no JSON", "hello\n", "not a request"},
		{"no version", `{"id":1,"method":"x"}` + "\n", "jsonrpc"},
		{"no id", `{"jsonrpc":"2.0","method":"x"}` + "\n", "id"},
		{"an object as id", `{"jsonrpc":"2.0","id":{},"method":"x"}` + "\n", "id"},
		{"a fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"x"}` + "\n", "id"},
		{"a huge id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 80) + `","method":"x"}` + "\n", "id"},
		{"an unknown member", `{"jsonrpc":"2.0","id":1,"method":"x","run_id":"other"}` + "\n", "run_id"},
		{"params that are no object", `{"jsonrpc":"2.0","id":1,"method":"x","params":[]}` + "\n", "params"},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"x"}]` + "\n", "not a request"},
		{"two values in a line", `{"jsonrpc":"2.0","id":1,"method":"x"}{}` + "\n", "more after the end"},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n", "UTF-8"},
		{"a frame that is too large", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", wire.MaxFrame) +
			"\"}\n", "larger"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path, ended := start(t, t.Context(), echo)
			conn := dial(t, path)
			go func() {
				fmt.Fprint(conn, test.frame)
				conn.(*net.UnixConn).CloseWrite()
			}()
			err := <-ended
			var violation *wire.ProtocolError
			if !errors.As(err, &violation) || !strings.Contains(violation.Reason, test.want) {
				t.Errorf("got %v, want a protocol error about %q", err, test.want)
			}
		})
	}
}

func TestServeHoldsBackAFlood(t *testing.T) {
	var running, most atomic.Int64
	gate := make(chan struct{})
	reached := make(chan struct{})
	full := sync.OnceFunc(func() { close(reached) })
	ctx, cancel := context.WithCancel(t.Context())
	path, ended := start(t, ctx, func(ctx context.Context, req wire.Request) (any, error) {
		if n := running.Add(1); n >= most.Load() {
			most.Store(n)
			if n == wire.MaxInFlight {
				full()
			}
		}
		<-gate
		running.Add(-1)
		return nil, nil
	})
	conn := dial(t, path)
	go func() {
		for i := range 10 * wire.MaxInFlight {
			fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", i)
		}
	}()
	<-reached
	close(gate)
	lines := bufio.NewScanner(conn)
	for range 10 * wire.MaxInFlight {
		if !lines.Scan() {
			t.Fatal("the connection ended before all answers came")
		}
	}
	if got := most.Load(); got > wire.MaxInFlight {
		t.Errorf("requests at once: got %d, want at most %d", got, wire.MaxInFlight)
	}
	cancel()
	<-ended
}

func TestServeHoldsBackConnections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path, ended := start(t, ctx, echo)
	var open []net.Conn
	for range wire.MaxConns {
		open = append(open, dial(t, path))
	}
	waiting := dial(t, path)
	fmt.Fprintln(waiting, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
	fmt.Fprint(open[0], `{"jsonrpc":`) // cut off: it hangs up in the middle, as a killed process does
	open[0].Close()
	if lines := bufio.NewScanner(waiting); !lines.Scan() {
		t.Error("the connection over the limit was not served when another had ended")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestServeReturnsTheHandlersError(t *testing.T) {
	boom := errors.New("boom")
	path, ended := start(t, t.Context(), func(context.Context, wire.Request) (any, error) { return nil, boom })
	fmt.Fprintln(dial(t, path), `{"jsonrpc":"2.0","id":1,"method":"x"}`)
	if err := <-ended; !errors.Is(err, boom) {
		t.Errorf("got %v, want %v", err, boom)
	}
}

// A program may end as soon as its connection is closed, and with it the conversation. The violation that closed it
// is still what Serve returns.
func TestServeReturnsTheViolationThatClosedAConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- wire.Serve(ctx, closeCalls{listener, cancel}, echo)
	}()
	fmt.Fprintln(dial(t, path), "")
	var violation *wire.ProtocolError
	if err := <-done; !errors.As(err, &violation) {
		t.Errorf("got %v, want the violation", err)
	}
}

// closeCalls is a listener whose connections call then when they are closed.
type closeCalls struct {
	net.Listener
	then func()
}

func (l closeCalls) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return closingConn{conn, l.then}, err
}

type closingConn struct {
	net.Conn
	then func()
}

func (c closingConn) Close() error {
	defer c.then()
	return c.Conn.Close()
}

// Messages of the remote side are handled in order if order matters.
func TestServeTakesSomeMethodsInTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var got []string // without a lock: only requests in turn write it
	go func() {
		ended <- wire.Serve(ctx, listener, func(_ context.Context, req wire.Request) (any, error) {
			if req.Method == "turn" {
				got = append(got, string(req.Params))
			}
			return req.Method, nil
		}, "turn")
	}()
	conn := dial(t, path)
	const count = 2000
	var frames strings.Builder
	for i := range count {
		fmt.Fprintf(&frames, `{"jsonrpc":"2.0","id":%d,"method":"turn","params":{"n":%d}}`+"\n"+
			`{"jsonrpc":"2.0","id":"x","method":"other"}`+"\n", i, i)
	}
	go fmt.Fprint(conn, frames.String())
	lines := bufio.NewScanner(conn)
	for range 2 * count {
		if !lines.Scan() {
			t.Fatal("the connection ended before all answers came")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for i, params := range got {
		if want := fmt.Sprintf(`{"n":%d}`, i); params != want {
			t.Fatalf("request %d: got %s, want %s", i, params, want)
		}
	}
	if len(got) != count {
		t.Errorf("got %d requests, want %d", len(got), count)
	}
}

// lasting is a result that knows when it has left.
type lasting struct {
	Text string
	left chan<- string
}

func (l lasting) Left() { l.left <- l.Text[:1] }

func TestServeSaysWhenAnAnswerHasLeft(t *testing.T) {
	left := make(chan string, 3)
	ctx, cancel := context.WithCancel(t.Context())
	path, ended := start(t, ctx, func(_ context.Context, req wire.Request) (any, error) {
		return lasting{strings.Repeat(req.Method, 4<<20), left}, nil
	})
	unread := dial(t, path)
	fmt.Fprintln(unread, `{"jsonrpc":"2.0","id":1,"method":"a"}`)
	read := dial(t, path)
	fmt.Fprintln(read, `{"jsonrpc":"2.0","id":1,"method":"b"}`)
	if _, err := bufio.NewReader(read).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	if got := <-left; got != "b" {
		t.Errorf("left first: got %q, want the one that was read", got)
	}
	select {
	case got := <-left:
		t.Errorf("left: got %q, want nothing before it is read", got)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := <-left; got != "a" {
		t.Errorf("left at the end: got %q, want the one that was not read", got)
	}
}

// A result of the maximum size fits, with any characters.
func TestServeDoesNotLengthenAnswers(t *testing.T) {
	text := strings.Repeat("<&>\u2028", 2<<20)
	path, _ := start(t, t.Context(), func(context.Context, wire.Request) (any, error) {
		return json.RawMessage(`"` + text + `"`), nil
	})
	conn := dial(t, path)
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Result string }
	if err := json.Unmarshal(line, &answer); err != nil || answer.Result != text {
		t.Errorf("got %.60s… of %d bytes (%v), want the text as it was", line, len(line), err)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\ud800","method":"x"}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		req, err := wire.ParseRequest(frame)
		if err != nil {
			return
		}
		if !json.Valid(req.ID) || !json.Valid(req.Params) || req.Method == "" {
			t.Errorf("accepted %q as %+v", frame, req)
		}
		// It is what a decoder makes of it, whichever way it was read.
		var want struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
		}
		if err := strictjson.Unmarshal(frame, &want); err != nil {
			t.Fatalf("accepted %q: %v", frame, err)
		}
		if want.Params == nil {
			want.Params = json.RawMessage("{}")
		}
		if string(req.ID) != string(want.ID) || req.Method != want.Method || string(req.Params) != string(want.Params) {
			t.Errorf("got %+v, want %+v", req, want)
		}
	})
}

// Answers that wait for a far side that does not read arrive once and whole, in any order,
// and those that cannot be encoded are the handler's failure.
func TestServeAnswersManyAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path, ended := start(t, ctx, func(_ context.Context, req wire.Request) (any, error) {
		return strings.Repeat(string(req.ID)+" ", 3000), nil
	})
	conn := dial(t, path)
	const count = 40 // ten kilobytes and more each: more than the socket holds
	for n := range count {
		fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", n+100)
	}
	seen := map[int]bool{}
	lines := bufio.NewReader(conn)
	for range count {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID     int    `json:"id"`
			Result string `json:"result"`
		}
		if err := json.Unmarshal(line, &answer); err != nil ||
			answer.Result != strings.Repeat(fmt.Sprint(answer.ID, " "), 3000) {
			t.Fatalf("got %.80s (%v)", line, err)
		}
		seen[answer.ID] = true
	}
	if len(seen) != count {
		t.Errorf("got answers to %d requests, want %d", len(seen), count)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	path, ended = start(t, t.Context(), func(context.Context, wire.Request) (any, error) { return func() {}, nil })
	fmt.Fprintln(dial(t, path), `{"jsonrpc":"2.0","id":1,"method":"x"}`)
	if err := <-ended; err == nil {
		t.Error("an answer that cannot be encoded: got no error")
	}
}
