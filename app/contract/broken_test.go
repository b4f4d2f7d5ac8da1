package contract_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/internal/wire"
)

// twoCalls makes two concurrent calls and then a third. It returns the echoed value of each,
// or the type and message of its failure.
var twoCalls = map[string]string{
	"python": `
import asyncio
from servers import demo

async def ask(n):
    try:
        return (await demo.echo({"n": n}))["n"]
    except Exception as failure:
        return f"{failure.type}: {failure.message}"

result = [*await asyncio.gather(ask(1), ask(2)), await ask(3)]
`,
	"node": `
import { echo } from "./servers/demo/index.js";

const ask = (n) => echo({ n }).then(({ data }) => data.n, (failure) => failure.type + ": " + failure.message);
globalThis.result = [...(await Promise.all([ask(1), ask(2)])), await ask(3)];
`,
}

// A brokenBroker answers a tool call in its own way: it writes to the
// connection, and hangs up when it returns false. Count is how many calls came before.
type brokenBroker func(conn net.Conn, id json.RawMessage, answer string, count int64) bool

// serve answers tool calls as broken does, and everything else properly.
func (h *host) serve(ctx context.Context, listener net.Listener, broken brokenBroker) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	var count atomic.Int64
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil // the guest has ended
		}
		conns.Go(func() {
			defer conn.Close()
			lines := bufio.NewReader(conn)
			for {
				line, err := lines.ReadBytes('\n')
				if err != nil || !h.answer(ctx, conn, line, broken, &count) {
					return
				}
			}
		})
	}
}

func (h *host) answer(ctx context.Context, conn net.Conn, line []byte, broken brokenBroker, count *atomic.Int64) bool {
	req, err := wire.ParseRequest(line)
	if err != nil {
		return false
	}
	if req.Method == wire.MethodReclaim { // nothing was suspended
		return say(conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no"}}`+"\n", req.ID))
	}
	result, err := h.handle(ctx, req)
	if err != nil {
		return false
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return false
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, encoded)
	if req.Method == "tools/call" {
		return broken(conn, req.ID, answer, count.Add(1)-1)
	}
	_, err = conn.Write([]byte(answer))
	return err == nil
}

func say(conn net.Conn, text string) bool {
	_, err := conn.Write([]byte(text))
	return err == nil
}

// A broker that fails must fail the calls that it leaves unanswered, and no others.
func TestClientMeetsBrokenBroker(t *testing.T) {
	tests := []struct {
		name string
		do   brokenBroker
		want [3]string // a part of each call's result; the first two in any order
		only string    // the only affected language
	}{
		{"it hangs up once", func(conn net.Conn, _ json.RawMessage, answer string, count int64) bool {
			return count > 0 && say(conn, answer)
		}, [3]string{"SandboxError", "", "3"}, ""}, // the client repeats only unsent requests
		{"it hangs up whenever it is asked", func(net.Conn, json.RawMessage, string, int64) bool {
			return false
		}, [3]string{"SandboxError", "SandboxError", "SandboxError"}, ""},
		{"it answers with rubbish once", func(conn net.Conn, _ json.RawMessage, answer string, count int64) bool {
			if count == 0 {
				return say(conn, "\xff\x00hello\n")
			}
			return say(conn, answer)
		}, [3]string{"SandboxError", "SandboxError", "3"}, ""},
		{"it answers a call that was never made", func(conn net.Conn, _ json.RawMessage, answer string,
			count int64) bool {
			if count == 0 {
				return say(conn, `{"jsonrpc":"2.0","id":999999,"result":{}}`+"\n")
			}
			return say(conn, answer)
		}, [3]string{"SandboxError", "SandboxError", "3"}, ""},
		{"it refuses one request", func(conn net.Conn, id json.RawMessage, answer string, count int64) bool {
			if count == 0 {
				return say(conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no"}}`+"\n",
					id))
			}
			return say(conn, answer)
		}, [3]string{"refused the request", "", "3"}, ""},
		{"it nests one answer without end", func(conn net.Conn, id json.RawMessage, answer string, count int64) bool {
			if count == 0 {
				deep := strings.Repeat(`[`, 2_000_000) + strings.Repeat(`]`, 2_000_000)
				return say(conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, deep))
			}
			return say(conn, answer)
		}, [3]string{"cannot be read", "", "3"}, "python"},
		{"it sends a frame without end", func(conn net.Conn, _ json.RawMessage, answer string, count int64) bool {
			if count == 0 {
				return say(conn, strings.Repeat("x", wire.MaxFrame+1<<20))
			}
			return say(conn, answer)
		}, [3]string{"more than 16777216 bytes", "more than 16777216 bytes", "3"}, ""},
		{"it answers byte by byte", func(conn net.Conn, _ json.RawMessage, answer string, _ int64) bool {
			for i := range len(answer) {
				if !say(conn, answer[i:i+1]) {
					return false
				}
			}
			return true
		}, [3]string{"1", "2", "3"}, ""},
	}
	for _, test := range tests {
		for language, code := range twoCalls {
			if test.only != "" && test.only != language {
				continue
			}
			t.Run(test.name+"/"+language, func(t *testing.T) {
				t.Parallel()
				h := newHost(language, code)
				got := h.run(t, true, func(ctx context.Context, listener net.Listener) error {
					return h.serve(ctx, listener, test.do)
				})
				checkCalls(t, got, test.want)
			})
		}
	}
}

func checkCalls(t *testing.T, got outcome, want [3]string) {
	t.Helper()
	var envelope struct {
		Result struct {
			Data []any `json:"data"`
		} `json:"result"`
	}
	if err := json.Unmarshal(got.line, &envelope); err != nil {
		t.Fatal(err)
	}
	data := envelope.Result.Data
	if len(data) != len(want) {
		t.Fatalf("got %s, want the ends of %d calls\nstderr: %s", got.line, len(want), got.stderr)
	}
	first, second := fmt.Sprint(data[0]), fmt.Sprint(data[1])
	if !strings.Contains(first, want[0]) {
		first, second = second, first
	}
	for i, end := range []string{first, second, fmt.Sprint(data[2])} {
		if !strings.Contains(end, want[i]) {
			t.Errorf("call %d: got %q, want it to contain %q", i+1, end, want[i])
		}
	}
}
