package visible_test

import (
	"fmt"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// A file name that looks like a picture shows what it is.
func ExampleText() {
	fmt.Println(visible.Text("holiday\u202egpj.exe"))
	// Output: holiday\u{202e}gpj.exe
}
