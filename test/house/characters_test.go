package house_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// TestOneAnswerAboutHiddenCharacters checks that definitions shown to a model, questions
// shown to a person, and generated code agree on which characters are visible.
func TestOneAnswerAboutHiddenCharacters(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) || strings.ContainsRune("\n\r\t\\", r) {
			continue // layout, which each treats for its place, and the sign of escapes
		}
		text := "a" + string(r) + "b"
		shown := visible.Text(text) == text
		if cleaned := catalog.Visible(text) == text; cleaned != shown {
			t.Fatalf("%U: to a person it is visible: %t, to a model: %t", r, shown, cleaned)
		}
	}
	for _, r := range "é世😀\U0001FAFF\u0600\u00A0\u00AD\u0378\u061C\u200B\u202E\u2800\u3000\u3164\uE000\uFE0F" +
		"\U000E0041" {
		written := generated(t, "a"+string(r)+"b")
		if got, want := strings.ContainsRune(written, r), visible.Is(r); got != want {
			t.Errorf("%U: in generated code it stands for itself: %t, want %t", r, got, want)
		}
	}
}

// generated returns all files for a tool with the given title.
func generated(t *testing.T, title string) string {
	t.Helper()
	definition, err := json.Marshal(map[string]any{"name": "tool", "title": title, "description": title,
		"inputSchema": map[string]any{"type": "object"}})
	if err != nil {
		t.Fatal(err)
	}
	tools, warnings := catalog.ParseTools("demo", []json.RawMessage{definition})
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	var all strings.Builder
	for _, language := range []codegen.Language{codegen.Python, codegen.Node} {
		tree, err := codegen.Generate([]catalog.Server{{ID: "demo", Tools: tools}}, language)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range tree.Files {
			all.Write(file.Data)
		}
	}
	return all.String()
}
