package codegen_test

import (
	"context"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// The wrappers of one server with one tool, and what was left out of its list.
func ExampleGenerate() {
	tool, err := catalog.ParseTool("crm", []byte(`{
		"name": "list-contacts",
		"description": "Lists contacts, newest first.",
		"inputSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	nameless := tool
	nameless.Name = "a b"
	tree, err := codegen.Generate([]catalog.Server{{ID: "crm", Tools: []catalog.Tool{tool, nameless}}}, codegen.Python)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range tree.Files {
		fmt.Println(file.Path)
	}
	for _, warning := range tree.Warnings {
		fmt.Printf("%s: %s\n", warning.Tool, warning.Text)
	}
	// Output:
	// INDEX.md
	// README.md
	// __init__.py
	// crm/__init__.py
	// crm/list_contacts.py
	// a b: has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
}

// A tree on disk is found by its content: publishing it twice gives one directory.
func ExamplePublish() {
	dir, err := os.MkdirTemp("", "wrappers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	tree, err := codegen.Generate([]catalog.Server{{ID: "crm", Problem: "it did not start"}}, codegen.Node)
	if err != nil {
		fmt.Println(err)
		return
	}
	var paths []string
	for range 2 {
		lease, err := codegen.Publish(context.Background(), dir, tree)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer lease.Close()
		paths = append(paths, lease.Path)
	}
	fmt.Println("the same directory:", paths[0] == paths[1])
	// Output:
	// the same directory: true
}
