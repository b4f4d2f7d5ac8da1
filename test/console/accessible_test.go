package console

import (
	"fmt"
	"testing"

	"github.com/airlock-mcp/airlock/test/browser"
)

// Each page at the width of a phone and of a desktop, light and dark: it has no violation of the
// rules of axe-core, is not wider than the screen, and a list of a few rows is not endless.
func TestEveryPageOnAPhoneAndADesktop(t *testing.T) {
	url, goOn := startNotes(t)
	close(goOn)
	a := startAirlock(t, trusted(url))
	token := a.token(t, "ann", "admin")
	host := a.host(t, token)
	for _, code := range []string{"# Count the notes\nprint(1)", "# Fails on purpose\nraise ValueError('no')"} {
		runs(t, host, code)
	}
	ended := begin(t, host, `# Buy more milk
from servers.notes import write_note

await write_note({"title": "Shopping", "oldText": "one litre of milk", "newText": "two litres of milk"})
`)
	b := browser.Open(t)
	for _, width := range []int{390, 1440} {
		for _, dark := range []bool{false, true} {
			b.Begin(t, browser.Profile{Dark: dark, Width: width, Height: 844})
			signIn(t, b, a, token)
			b.Sees(t, "Waits for a person")
			b.Sees(t, "notes/write_note")
			b.Sees(t, "Fails on purpose")
			var paths []string
			b.Evaluate(t, `[...document.querySelectorAll("nav a, main .panels a")].map((a) => a.getAttribute("href"))`, &paths)
			if len(paths) < 12 {
				t.Fatalf("the navigation and the overview have %q", paths)
			}
			for _, path := range paths {
				name := fmt.Sprintf("%s at %d px, dark %t", path, width, dark)
				b.Goto(t, a.address+path)
				pictured(t, b, path, width, dark)
				for _, violation := range b.Axe(t) {
					t.Errorf("%s: %s", name, violation)
				}
				var size struct{ Width, Height int }
				b.Evaluate(t, `({Width: document.documentElement.scrollWidth, Height: document.documentElement.scrollHeight})`,
					&size)
				if size.Width > width {
					t.Errorf("%s: it is %d px wide", name, size.Width)
				}
				if size.Height > 8000 {
					t.Errorf("%s: it is %d px high", name, size.Height)
				}
				b.NoProblems(t)
			}
		}
	}
	b.Goto(t, a.address+"/questions")
	b.Click(t, "link", "notes/write_note")
	b.Click(t, "button", "Deny")
	if got := ended(); got.OK {
		t.Errorf("the program was denied its call, and got %+v", got)
	}
}
