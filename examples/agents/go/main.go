// Command go is a plain MCP client: it looks for tools, runs a program in Airlock, and prints its result.
//
//	go run ./examples/agents/go [FILE]
//
// FILE is a Python program; without it, a small one runs. Environment: AIRLOCK is the command of Airlock.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const code = "result = sum(n * n for n in range(1, 101))"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, files []string) error {
	program := code
	if len(files) > 0 {
		text, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		program = string(text)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil)
	airlock := &mcp.CommandTransport{Command: exec.Command(cmp.Or(os.Getenv("AIRLOCK"), "airlock"), "mcp")}
	session, err := client.Connect(ctx, airlock, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "tool:", tool.Name)
	}
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": "python", "code": program}})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer.StructuredContent)
}
