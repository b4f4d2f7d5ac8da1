package rules

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
)

// A reload that has read a narrower file keeps it as the confirmed one, but not if the file was changed
// back and confirmed before the reload ended.
func TestTheConfirmedContentIsThatOfTheFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	wide := trust.Content{File: file, Text: []byte("mcpServers: {beta: {url: 'http://127.0.0.1:1'}}\n")}
	narrow := trust.Content{File: file, Text: []byte("mcpServers: {}\n")}
	for name, c := range map[string]struct{ written, want trust.Content }{
		"unchanged":    {narrow, narrow},
		"changed back": {wide, wide},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			book := trust.Open(home)
			if err := book.Keep(wide, "ann"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, c.written.Text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := confirmed(t.Context(), home, &state.State{}, wide, narrow); err != nil {
				t.Fatal(err)
			}
			if got, _, err := book.Find(file); err != nil || got.Digest() != c.want.Digest() {
				t.Errorf("the confirmed content is %q, %v, want %q", got.Text, err, c.want.Text)
			}
		})
	}
}
