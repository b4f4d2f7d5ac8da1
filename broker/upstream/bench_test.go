package upstream_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
)

// BenchmarkCall is one call of "echo" over stdio through a Set.
func BenchmarkCall(b *testing.B) {
	set, _ := fake(b, "good")
	arguments := json.RawMessage(`{"text":"hello"}`)
	for b.Loop() {
		if _, err := set.Call(b.Context(), "good", "echo", arguments); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallBySDK is the same call with the SDK alone.
func BenchmarkCallBySDK(b *testing.B) {
	config, _ := upstreamtest.Fake(b, "good")
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(
		b.Context(), &mcp.CommandTransport{Command: exec.Command(config.Command, config.Args...)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	arguments := json.RawMessage(`{"text":"hello"}`)
	for b.Loop() {
		if _, err := session.CallTool(b.Context(),
			&mcp.CallToolParams{Name: "echo", Arguments: arguments}); err != nil {
			b.Fatal(err)
		}
	}
}
