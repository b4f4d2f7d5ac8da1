package visible_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/visible"
)

func TestText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain text", "delete /srv/a b.txt", "delete /srv/a b.txt"},
		{"letters of other scripts", "Grüße 世界 مرحبا", "Grüße 世界 مرحبا"},
		{"a terminal's escape", "\x1b[2Jx", `\u{1b}[2Jx`},
		{"line breaks", "a\nb\r\tc", `a\nb\r\tc`},
		{"a right-to-left override", "a\u202etxt.exe", `a\u{202e}txt.exe`},
		{"zero-width characters", "a\u200bb\ufeffc", `a\u{200b}b\u{feff}c`},
		{"tag characters", "x\U000E0041", `x\u{e0041}`},
		{"a Hangul filler, which is a letter", "a\u3164b", `a\u{3164}b`},
		{"a no-break space", "a\u00a0b", `a\u{a0}b`},
		{"bytes that are no UTF-8", "a\xffb", `a\xffb`},
		{"an escape that is imitated", `a\u{202e}`, `a\\u{202e}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := visible.Text(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := visible.Lines("a\n\tb\\n\x1b"); got != "a\n\tb\\n\\u{1b}" {
		t.Errorf("lines: got %q", got)
	}
	if got := visible.Line("\\d+\n\x1b"); got != `\d+\n\u{1b}` {
		t.Errorf("line: got %q", got)
	}
	if got := visible.Clip("äöüß\x00", 5); got != "äöüß…" {
		t.Errorf("clip: got %q", got)
	}
}

// TestIs lists one character of each class that another judgement of
// visibility got wrong.
func TestIs(t *testing.T) {
	tests := []struct {
		name      string
		r         rune
		is, blank bool
	}{
		{"the plain space", ' ', true, false},
		{"a letter", 'é', true, false},
		{"a combining mark", '\u0301', true, false},
		{"an emoji", '😀', true, false},
		{"an emoji of a later Unicode version", '\U0001FAFF', true, false},
		{"an Arabic number sign, a visible format character", '\u0600', true, false},
		{"the replacement character", '\uFFFD', true, false},
		{"a line break", '\n', false, false},
		{"delete", '\u007F', false, false},
		{"a soft hyphen", '\u00AD', false, false},
		{"the Arabic letter mark", '\u061C', false, false},
		{"a Hangul filler", '\u3164', false, false},
		{"the grapheme joiner, which is a mark", '\u034F', false, false},
		{"a zero-width space", '\u200B', false, false},
		{"a variation selector", '\uFE0F', false, false},
		{"a tag", '\U000E0041', false, false},
		{"private use", '\uE000', false, false},
		{"a surrogate", 0xD800, false, false},
		{"a noncharacter", '\uFFFE', false, false},
		{"an unassigned character", '\u0378', false, false},
		{"a note without a head", '\U0001D159', false, false},
		{"a no-break space", '\u00A0', false, true},
		{"an ideographic space", '\u3000', false, true},
		{"a blank of braille", '\u2800', false, true},
		{"a line separator", '\u2028', false, false},
	}
	for _, test := range tests {
		if is, blank := visible.Is(test.r), visible.IsBlank(test.r); is != test.is || blank != test.blank {
			t.Errorf("%s: got visible %t and blank %t, want %t and %t", test.name, is, blank, test.is, test.blank)
		}
	}
}

func FuzzTextIsSafeAndUnambiguous(f *testing.F) {
	f.Add("a\u202eb", "a\\u{202e}b")
	f.Fuzz(func(t *testing.T, a, b string) {
		shown := visible.Text(a)
		if !utf8.ValidString(shown) || strings.ContainsAny(shown, "\n\r\t\x1b\x00\u202e\u200b") {
			t.Errorf("%q is shown as %q", a, shown)
		}
		if a != b && shown == visible.Text(b) {
			t.Errorf("%q and %q are both shown as %q", a, b, shown)
		}
	})
}
