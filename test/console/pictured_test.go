package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/test/browser"
)

// pictured takes a picture of a whole page into the directory AIRLOCK_PICTURES, for a person who
// reviews them; it does nothing without one.
func pictured(t *testing.T, b *browser.Browser, path string, width int, dark bool) {
	t.Helper()
	directory := os.Getenv("AIRLOCK_PICTURES")
	if directory == "" {
		return
	}
	name := fmt.Sprintf("%s-%d-%t.png", strings.ReplaceAll(strings.Trim(path, "/"), "/", "_"), width, dark)
	b.Do(t, "screenshot", map[string]any{"path": filepath.Join(directory, name), "full": true})
}
