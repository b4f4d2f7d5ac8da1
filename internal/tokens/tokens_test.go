package tokens

import (
	"strings"
	"testing"
)

// The counts are those that OpenAI's tiktoken gives for o200k_base.
func TestCount(t *testing.T) {
	tests := []struct {
		text string
		want int
	}{
		{"", 0},
		{"hello world", 2},
		{"tiktoken is great!", 6},
		{"antidisestablishmentarianism", 6},
		{"2 + 2 = 4", 7},
	}
	for _, test := range tests {
		if got, err := Count(test.text); err != nil || got != test.want {
			t.Errorf("%q: got %d, %v, want %d", test.text, got, err, test.want)
		}
	}
}

func TestPiecesCoverTheText(t *testing.T) {
	for _, text := range []string{"a  b", "x\n\n  y", "don't", "\xff\xfe", "日本語 text", "   ", "a\t\tb",
		strings.Repeat("a", 5000), "{\"a\": 1}\r\n"} {
		var got strings.Builder
		for rest := text; rest != ""; {
			size := pieceSize(rest)
			got.WriteString(rest[:size])
			rest = rest[size:]
		}
		if got.String() != text {
			t.Errorf("got %q, want %q", got.String(), text)
		}
	}
	var blanks []string
	for rest := "a   b"; rest != ""; {
		size := pieceSize(rest)
		blanks = append(blanks, rest[:size])
		rest = rest[size:]
	}
	if strings.Join(blanks, "|") != "a|  | b" {
		t.Errorf("got %q, want the last blank with what follows", blanks)
	}
}
