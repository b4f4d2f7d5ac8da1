package redact_test

import (
	"fmt"

	"github.com/airlock-mcp/airlock/redact"
)

// A held value is removed from every text.
func Example() {
	redactor := redact.New()
	redactor.Hold("correct-horse-battery-staple")
	text, found := redactor.Bytes([]byte("password: correct-horse-battery-staple"))
	fmt.Println(string(text), len(found))
	// Output: password: [redacted:held-credential] 1
}
