package schema_test

import (
	"fmt"

	"github.com/airlock-mcp/airlock/internal/schema"
)

// A schema checks arguments and describes a problem in one sentence.
func Example() {
	checked, err := schema.Compile(
		[]byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],` +
			`"additionalProperties":false}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(checked.Validate([]byte(`{"path":"/tmp/a"}`)))
	fmt.Println(checked.Validate([]byte(`{"path":7}`)))
	fmt.Println(checked.Validate([]byte(`{"file":"/tmp/a"}`)))
	// Output:
	// <nil>
	// "/path" must be string, not number
	// the value has unknown members 'file' (known: path); the value lacks 'path'
}
