package policies_test

import (
	"encoding/json"
	"fmt"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// The default policy allows what the operator has allowed.
func Example() {
	engine, err := policies.Load(policies.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	tool, err := catalog.ParseTool("files", json.RawMessage(
		`{"name":"delete","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	operator := policies.Operator{"files": {Deny: []string{"delete"}}}
	decision := engine.Decide(policies.Request{Principal: "user", Tool: tool,
		Settings: operator.Settings("files", "delete", nil)})
	fmt.Println("allowed:", decision.Allow)
	// Output: allowed: false
}
