package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/test/browser"
)

// fixed puts one time, one run and one duration in the place of each that a page has, so
// that pictures of one state are the same.
const fixed = `(() => {
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = texts.nextNode()); ) {
		node.data = node.data
			.replace(/\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d+)?/g, "2026-01-15$109:30:00")
			.replace(/\b(run|call|ses|tok|apr)_[0-9a-f]{8,}/g, "$1_4f1c9a2e")
			.replace(/sha256:[0-9a-f]{16,}/g, "sha256:9d3b61c0")
			.replace(/\b[0-9a-f]{32}\b/g, "9d3b61c0")
			.replace(/\b\d+(\.\d+)?( ?)(ms|s|µs)\b/g, "40$2$3")
			.replace(/\b(127\.0\.0\.1):\d+/g, "$1:7823");
	}
	return true;
})()`

// TestScreenshots makes the picture of the README and docs/console.md, light and dark, where make screenshots
// asks for it: AIRLOCK_SCREENSHOTS is the directory.
func TestScreenshots(t *testing.T) {
	directory := os.Getenv("AIRLOCK_SCREENSHOTS")
	if directory == "" {
		t.Skip("makes pictures for the documentation: run make screenshots")
	}
	url, goOn := startNotes(t)
	close(goOn)
	a := startAirlock(t, trusted(url))
	token := a.token(t, "ann", "run,approve,audit")
	host := a.host(t, a.token(t, "ann", "run")) // whose token cannot approve
	b := browser.Open(t)
	ended := begin(t, host, `from servers.notes import read_note, write_note

old = await read_note({"title": "Shopping"})
new = await write_note({
    "title": "Shopping",
    "oldText": "one litre of milk\nbread",
    "newText": "two litres of milk\nbread",
})
print("written")
result = {"title": "Shopping", "lines": 2}
`)
	for suffix, dark := range map[string]bool{"light": false, "dark": true} {
		b.Begin(t, browser.Profile{Dark: dark, Width: 1100, Height: 900})
		signIn(t, b, a, token)
		b.Goto(t, a.address+"/questions")
		b.Click(t, "link", "notes/write_note")
		b.Sees(t, "two litres of milk")
		var done bool
		b.Evaluate(t, fixed, &done)
		b.Do(t, "screenshot", map[string]any{"path": filepath.Join(directory, "console-question-"+suffix+".png")})
	}
	b.Do(t, "taps", map[string]any{"selector": "button.primary"})
	if got := ended(); !got.OK {
		t.Fatalf("got %+v", got)
	}
}
