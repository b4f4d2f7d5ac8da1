package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

func TestTruncate(t *testing.T) {
	const text = "aé世😀z" // 1, 2, 3, 4 and 1 bytes
	tests := []struct {
		n                             int
		head, tail, bytes, characters string
	}{
		{-1, "", "", "…", ""},
		{0, "", "", "…", ""},
		{1, "a", "z", "a…", "…"},
		{2, "a", "z", "a…", "a…"},
		{3, "aé", "z", "aé…", "aé…"},
		{5, "aé", "😀z", "aé…", text},
		{9, "aé世", "世😀z", "aé世…", text},
		{10, "aé世😀", "é世😀z", "aé世😀…", text},
		{11, text, text, text, text},
	}
	for _, test := range tests {
		got := []string{truncate.Head(text, test.n), truncate.Tail(text, test.n), truncate.Bytes(text, test.n),
			truncate.Characters(text, test.n)}
		for i, want := range []string{test.head, test.tail, test.bytes, test.characters} {
			if got[i] != want {
				t.Errorf("%s of %d: got %q, want %q", []string{"Head", "Tail", "Bytes", "Characters"}[i], test.n,
					got[i], want)
			}
		}
	}
	if got, want := truncate.Head("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80"; got != want {
		t.Errorf("bytes that are no characters: got %q, want %q", got, want)
	}
	if got, want := truncate.Tail("a\x80b", 2), "\x80b"; got != want {
		t.Errorf("a byte that belongs to no character: got %q, want %q", got, want)
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("aé世😀z", 5)
	f.Add("\xf0\x9f\x98", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n %= len(s) + 2
		head, tail, cut := truncate.Head(s, n), truncate.Tail(s, n), truncate.Characters(s, n)
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
			t.Errorf("%q cut to %d: got %q and %q, not its ends", s, n, head, tail)
		}
		if most := max(n, 0); len(head) > most || len(tail) > most || utf8.RuneCountInString(cut) > most {
			t.Errorf("%q cut to %d: got %q, %q and %q, too long", s, n, head, tail, cut)
		}
		if least := min(n, len(s)) - utf8.UTFMax; len(head) <= least || len(tail) <= least {
			t.Errorf("%q cut to %d: got %q and %q, shorter than needed", s, n, head, tail)
		}
		if utf8.ValidString(s) && !(utf8.ValidString(head) && utf8.ValidString(tail) && utf8.ValidString(cut)) {
			t.Errorf("%q cut to %d: got %q, %q and %q, cut inside a character", s, n, head, tail, cut)
		}
	})
}
