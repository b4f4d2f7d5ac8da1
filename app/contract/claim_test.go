package contract_test

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/wire"
)

// A person who is asked about a call is shown the line of the code that makes it.
func TestCallsSayTheLineThatMakesThem(t *testing.T) {
	for _, test := range []struct {
		name, language, code string
		want                 []int // 0: unknown to the client
	}{
		{"one after another", "node", `import { callTool } from "./client/mcp_client.js";
await callTool("x", "y");

await callTool("x", "y");
`, []int{2, 4}},
		{"in functions", "node", `import { callTool } from "./client/mcp_client.js";
const call = () => callTool("x", "y");
async function later() {
  await new Promise((resolve) => setTimeout(resolve, 1));
  await callTool("x", "y");
}
await Promise.all([1, 2].map(call));
await later();
await eval('callTool("x", "y")');
`, []int{2, 2, 5, 9}},
		{"with stacks of its own", "node", `import { callTool } from "./client/mcp_client.js";
Error.prepareStackTrace = () => "mine";
await callTool("x", "y");
if (new Error().stack !== "mine") throw "the client has changed how the code sees stacks";
`, []int{3}},
		{"stacks as they were", "node", `import { callTool } from "./client/mcp_client.js";
const before = Object.getOwnPropertyDescriptor(Error, "prepareStackTrace")?.value;
await callTool("x", "y");
if (Error.prepareStackTrace !== before || !/\n +at /.test(new Error().stack)) throw "the client has changed how the code sees stacks";
`, []int{3}},
		{"without a way to look at stacks", "node", `import { callTool } from "./client/mcp_client.js";
Object.freeze(Error);
await callTool("x", "y");
`, []int{0}},
		{"one after another", "python", `from client.mcp_client import call_tool
await call_tool("x", "y")

await call_tool("x", "y")
`, []int{2, 4}},
	} {
		t.Run(test.language+" "+test.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []int
			h := newHost(test.language, test.code)
			ended := h.run(t, false, func(ctx context.Context, listener net.Listener) error {
				return wire.Serve(ctx, listener, func(ctx context.Context, req wire.Request) (any, error) {
					if req.Method == "tools/call" {
						var call struct{ Line int }
						if err := json.Unmarshal(req.Params, &call); err != nil {
							return nil, err
						}
						mu.Lock()
						got = append(got, call.Line)
						mu.Unlock()
					}
					return h.handle(ctx, req)
				})
			})
			var envelope struct {
				Result struct{ OK bool }
			}
			if err := json.Unmarshal(ended.line, &envelope); err != nil || !envelope.Result.OK {
				t.Fatalf("the code failed: %s %s", ended.line, ended.stderr)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got lines %v, want %v", got, test.want)
			}
		})
	}
}
