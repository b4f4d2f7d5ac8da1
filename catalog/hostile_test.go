package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
)

// Absurd queries must cost little and find nothing wrong.
func TestHostileQuestions(t *testing.T) {
	s := snapshot(t, catalog.Server{ID: "files", Tools: []catalog.Tool{
		tool(t, "files", "read_file", "Reads a file."), tool(t, "files", "send_email", "Sends an email."),
		tool(t, "files", "duquwenjian", "读取文件的内容"), tool(t, "files", "fasongyoujian", "发送电子邮件"),
	}})
	tests := []struct {
		name, query string
		want        string // the first tool; empty for none
	}{
		{"100 kB of one word", strings.Repeat("read ", 20000), "read_file"},
		{"100 kB of one long word", strings.Repeat("x", 100_000), ""},
		{"100 kB of different words", manyWords(20000), ""},
		{"control characters alone", "\x00\x01\x1b[31m\u202e\u200b", ""},
		{"control characters between letters", "read\x00 file\x1b", "read_file"},
		{"bytes that are no UTF-8", "\xff\xfe read file", "read_file"},
		{"Chinese", "读取文件", "duquwenjian"},
		{"Chinese, another order", "文件读取", "duquwenjian"},
		{"Chinese, another tool", "发送邮件", "fasongyoujian"},
		{"Chinese that no tool fits", "今天天气怎么样", ""},
		{"Cyrillic that no tool fits", "какая погода", ""},
		{"100 kB of Chinese that no tool fits", strings.Repeat("今天天气", 8500), ""},
		{"Japanese that no tool fits", "おはようございます", ""},
		{"Arabic that no tool fits", "ما هو الطقس اليوم", ""},
		{"Hebrew that turns the line around", "\u202eשלום\u202c read a file", "read_file"},
		{"emoji", "🧨🧨👩‍👩‍👧‍👦", ""},
		{"emoji between words", "📧 send 🧨 email 📧", "send_email"},
		{"a thousand marks on one letter", "e" + strings.Repeat("\u0301", 1000), ""},
		{"a million spaces before words", strings.Repeat(" ", 1_000_000) + "read a file", "read_file"},
		{"words before a million spaces", "read a file" + strings.Repeat(" ", 1_000_000), "read_file"},
		{"patterns of regular expressions", `(a+)+$ .*(?:read)[file]{1,99999}|\w`, "read_file"},
		{"signs alone", "?!*()[]{}", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.Find(catalog.Query{Text: test.query})
			first := ""
			if len(got.Tools) > 0 {
				first = got.Tools[0].ToolName
			}
			if got.Tools == nil || len(got.Tools) > catalog.DefaultLimit || got.Total < len(got.Tools) {
				t.Errorf("got %d tools of %d, want a list of at most %d", len(got.Tools), got.Total,
					catalog.DefaultLimit)
			}
			if first != test.want || (got.Total == 0) != (test.want == "") {
				t.Errorf("got %q of %d, want %q", first, got.Total, test.want)
			}
		})
	}
}

// manyWords returns n words that no tool has.
func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "qz%cv%c ", 'a'+i%26, 'a'+i/26%26)
	}
	return b.String()
}

func TestPagesOfAnAnswer(t *testing.T) {
	var tools []catalog.Tool
	for i := range 30 {
		tools = append(tools, tool(t, "s", fmt.Sprintf("read_%02d", i), "Reads a file."))
	}
	s := snapshot(t, catalog.Server{ID: "s", Tools: tools})
	seen := map[string]bool{}
	for offset := 0; offset < 30; offset += 8 {
		got := s.Find(catalog.Query{Text: "read a file", Offset: offset})
		if got.Total != 30 || got.Offset != offset || len(got.Tools) != min(8, 30-offset) {
			t.Errorf("offset %d: got %d of %d from %d", offset, len(got.Tools), got.Total, got.Offset)
		}
		for _, entry := range got.Tools {
			seen[entry.ToolName] = true
		}
	}
	if len(seen) != 30 {
		t.Errorf("got %d tools on all pages, want 30", len(seen))
	}
	if got := s.Find(catalog.Query{Text: "read a file", Offset: 1000}); got.Total != 30 || len(got.Tools) != 0 {
		t.Errorf("behind the last: got %d of %d", len(got.Tools), got.Total)
	}
}
