package codegen

import (
	"strings"
	"testing"
)

func TestLiterals(t *testing.T) {
	for _, tt := range []struct{ name, text, python, node string }{
		{"plain", "a b", `"a b"`, `"a b"`},
		{"quotes and backslashes", `"\'`, `"\"\\'"`, `"\"\\'"`},
		{"line feed", "a\nb", `"a\nb"`, `"a\nb"`},
		{"controls", "\x00\r\x7f", `"\u0000\u000d\u007f"`, `"\u0000\u000d\u007f"`},
		{"line separators", "\u2028\u2029\u0085", `"\u2028\u2029\u0085"`, `"\u2028\u2029\u0085"`},
		{"bidi and zero width", "\u202e\u200b\ufeff", `"\u202e\u200b\ufeff"`, `"\u202e\u200b\ufeff"`},
		{"letters and pictures", "é数🧪", `"é数🧪"`, `"é数🧪"`},
		{"hidden beyond the first plane", "\U000e0041", `"\U000e0041"`, `"\u{e0041}"`},
		{"invisible fillers and selectors", "\u3164\ufe0f", `"\u3164\ufe0f"`, `"\u3164\ufe0f"`},
		{"a lone surrogate", "\xed\xa0\x80", `"\ud800"`, `"\ud800"`},
		{"a byte that is no text", "\xff", "\"\uFFFD\"", "\"\uFFFD\""},
		{"a space that is not one", "\u00a0", `"\u00a0"`, `"\u00a0"`},
	} {
		if got := pythonLiteral(tt.text); got != tt.python {
			t.Errorf("%s in Python: got %s, want %s", tt.name, got, tt.python)
		}
		if got := nodeLiteral(tt.text); got != tt.node {
			t.Errorf("%s in JavaScript: got %s, want %s", tt.name, got, tt.node)
		}
	}
}

func TestDocstring(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"one line", "Read.", `"""Read."""` + "\n"},
		{"a quotation mark alone", `a "b" c`, `"""a "b" c"""` + "\n"},
		{"a quotation mark at the end", `a "b"`, `"""a "b\""""` + "\n"},
		{"a quotation mark at the start", `"a" b`, `"""\"a" b"""` + "\n"},
		{"quotation marks in a row", `a """ b`, `"""a \"\"\" b"""` + "\n"},
		{"a backslash at the end", `a\`, `"""a\\"""` + "\n"},
		{"a backslash before a quotation mark", `a\" b`, `"""a\\" b"""` + "\n"},
		{"lines", "a\n\nb", "\"\"\"a\n\n  b\n  \"\"\"\n"},
	} {
		if got := strings.TrimPrefix(string(docstring(nil, "  ", tt.text)), "  "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestJSDoc(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"one line", "Read.", "/** Read. */\n"},
		{"the end of a comment", "a */ b **/", "/** a *\\/ b **\\/ */\n"},
		{"a slash at the start", "/ a", "/** \\/ a */\n"},
		{"a tag", "@ts-ignore and {@link x} and *@x", "/** \\@ts-ignore and {\\@link x} and *\\@x */\n"},
		{"an address and a package", "a@b.c (@scope/x)", "/** a@b.c (@scope/x) */\n"},
		{"lines", "a\n\n@b\n/", "/**\n * a\n *\n * \\@b\n * /\n */\n"},
		{"a line separator", "a\u2028b", "/** a\\u2028b */\n"},
	} {
		if got := string(jsDoc(nil, "", tt.text)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"short", "a b", 10, "a b"},
		{"white space of every kind", " a\t\n\u2028b\u00a0\r\n", 10, "a b"},
		{"exactly as long as there is room", "abc de", 6, "abc de"},
		{"cut at a word", "the quick, brown fox", 15, "the quick…"},
		{"one long word", "abcdefghijkl", 10, "abcdefg…"},
		{"a long word late", "abcdefgh ijklmnopqrst", 14, "abcdefgh…"},
		{"characters that print longer", "\u200b\u200b\u200b", 12, "\u200b…"},
		{"no room at all", "a", 0, ""},
		{"nothing", " ", 5, ""},
	} {
		if got := oneLine(tt.text, tt.limit); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestParagraphs(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		limit      int
		want       string
		whole      bool
	}{
		{"tidy already", "a\n\n  - b", 20, "a\n\n  - b", true},
		{"carriage returns, tabs, many lines", "\r\n a\r\n\r\n\r\n\r\n\tb \r\n", 20, "a\n\n    b", true},
		{"line separators", "a\u2028b\u0085c", 20, "a\nb\nc", true},
		{"too long", "abc def ghi", 8, "abc def", false},
		{"one long word", "abcdefghij", 4, "abcd", false},
	} {
		got, whole := paragraphs(tt.text, tt.limit)
		if got != tt.want || whole != tt.whole {
			t.Errorf("%s: got %q, whole %v, want %q, %v", tt.name, got, whole, tt.want, tt.whole)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, tt := range []struct{ name, title, description, want string }{
		{"the first sentence", "T", "Read a file. Then more.", "Read a file."},
		{"the first paragraph", "T", "Read a file\n\nThen more", "Read a file"},
		{"the title for want of a description", "Read", " \n", "Read"},
		{"a long sentence", "", strings.Repeat("word ", 50), strings.TrimRight(strings.Repeat("word ", 21), " ") + "…"},
	} {
		if got := summary(tt.title, tt.description); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
