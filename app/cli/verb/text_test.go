package verb

import (
	"slices"
	"strings"
	"testing"
)

func TestWrapped(t *testing.T) {
	for _, test := range []struct {
		text string
		room int
		want []string
	}{
		{"", 10, []string{""}},
		{"one two three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 6, []string{"one", "two", "three"}},
		{"a sha256:0123456789", 8, []string{"a", "sha256:0", "12345678", "9"}},
		{"größe über alles", 10, []string{"größe über", "alles"}},
	} {
		if got := Wrapped(test.text, test.room); !slices.Equal(got, test.want) {
			t.Errorf("%q in %d: got %q, want %q", test.text, test.room, got, test.want)
		}
	}
}

// A table fits the width of the terminal: the widest columns are cut first.
func TestTablesFitTheRoom(t *testing.T) {
	var rows Table
	rows.Add(Cell{"run_0123456789abcdef0123456789abcdef", Plain}, Cell{"2026-11-22 02:35:08", Dim}, Cell{"ok", Green},
		Cell{strings.Repeat("x", 300), Plain})
	for _, room := range []int{40, 80, 200} {
		total := columnGap * 3
		for _, width := range rows.widths(room) {
			total += width
		}
		if total > room {
			t.Errorf("got %d columns in a room of %d: %v", total, room, rows.widths(room))
		}
	}
	if got, want := rows.widths(200), []int{36, 19, 2, 137}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := rows.widths(0), []int{36, 19, 2, 300}; !slices.Equal(got, want) {
		t.Errorf("without a limit: got %v, want %v", got, want)
	}
}
