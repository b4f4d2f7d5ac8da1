package audit_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/golden"
)

func TestExport(t *testing.T) {
	dir := t.TempDir()
	run(t, dir)
	// The process that wrote has a name at random, and with it every hash.
	chance := regexp.MustCompile(`w_[0-9a-f]{32}|sha256:[0-9a-f]{64}`)
	for _, format := range audit.Formats() {
		t.Run(string(format), func(t *testing.T) {
			var out bytes.Buffer
			if err := audit.Export(&out, dir, format,
				&audit.ExportOptions{RunID: "run_7f00", Version: "1.2.3"}); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, chance.ReplaceAll(out.Bytes(), []byte("…")),
				filepath.Join("testdata", "export."+string(format)))
		})
	}
	t.Run("jsonl is the log itself", func(t *testing.T) {
		var out bytes.Buffer
		if err := audit.Export(&out, dir, audit.FormatJSONL, nil); err != nil {
			t.Fatal(err)
		}
		if want := readFile(t, filepath.Join(dir, "audit-000000000001.jsonl")); !bytes.Equal(out.Bytes(), want) {
			t.Errorf("got %s, want %s", out.Bytes(), want)
		}
	})
	t.Run("from a number on", func(t *testing.T) {
		var out bytes.Buffer
		if err := audit.Export(&out, dir, audit.FormatJSONL, &audit.ExportOptions{From: 11}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 2 {
			t.Errorf("got %d records, want 2", lines)
		}
	})
	t.Run("an unknown format", func(t *testing.T) {
		if err := audit.Export(&bytes.Buffer{}, dir, "xml", nil); err == nil {
			t.Error("got nil, want an error")
		}
	})
}
