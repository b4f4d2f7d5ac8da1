package codegen_test

import (
	"encoding/json"
	"fmt"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// The files that a program in the sandbox imports.
func ExampleGenerate() {
	tools, _ := catalog.ParseTools("files", []json.RawMessage{json.RawMessage(`{"name":"read_file","inputSchema":{"type":"object"}}`)})
	tree, err := codegen.Generate([]catalog.Server{{ID: "files", Tools: tools}}, codegen.Python)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range tree.Files {
		fmt.Println(file.Path)
	}
	// Output:
	// INDEX.md
	// README.md
	// __init__.py
	// files/__init__.py
	// files/read_file.py
}
