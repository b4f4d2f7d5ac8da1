package catalog_test

import (
	"encoding/json"
	"fmt"

	"github.com/airlock-mcp/airlock/catalog"
)

// A snapshot of one server: a search, and a misspelt name.
func Example() {
	tools, warnings := catalog.ParseTools("files", []json.RawMessage{
		json.RawMessage(`{"name":"read_file","description":"Read a file.","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"list_directory","description":"List what is in a directory.",` +
			`"inputSchema":{"type":"object"}}`),
	})
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "files", Tools: tools}})
	if err != nil || len(warnings) > 0 {
		fmt.Println(err, warnings)
		return
	}
	for _, found := range snapshot.Search(catalog.Query{Text: "directories"}) {
		fmt.Println(found.ServerID, found.ToolName)
	}
	_, err = snapshot.Lookup("files", "readFiles")
	fmt.Println(err)
	// Output:
	// files list_directory
	// server "files" has no tool "readFiles"; did you mean "read_file"?
}
