package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/test/browser"
)

// views are a dark phone and a light desktop. Colours do not depend on the width.
var views = []browser.Profile{{Dark: true, Width: 390, Height: 844}, {Width: 1440, Height: 844}}

// Each page in each view: it has no violation of the rules of axe-core, is not wider than the screen, and a list of a
// few rows is not endless.
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
	a.prints(t, "agents", "create", "crawler", "--for", "ann")
	b := browser.Open(t)
	signIn(t, b, a, token)
	paths := everyPage(t, b, a)
	for _, view := range views {
		width, dark := view.Width, view.Dark
		name := fmt.Sprintf("%d px, dark %t", width, dark)
		b.Begin(t, view)
		b.Goto(t, a.address+"/sign-in")
		fits(t, b, "/sign-in", name, width)
		signIn(t, b, a, token)
		b.Sees(t, "Waits for a person")
		b.Sees(t, "notes/write_note")
		b.Sees(t, "Fails on purpose")
		b.Sees(t, "Buy more milk")
		for _, path := range paths {
			b.Goto(t, a.address+path)
			fits(t, b, path, name, width)
			pictured(t, b, path, width, dark)
		}
		b.Goto(t, a.address+"/policies")
		b.Fill(t, "Server", "notes")
		b.Fill(t, "Tool", "write_note")
		b.Click(t, "button", "Explain")
		b.Sees(t, "Decided as if it were the first call of your session.")
		fits(t, b, "an explained call", name, width)
		pictured(t, b, "policies-explained", width, dark)
		b.Goto(t, a.address+"/audit")
		b.Click(t, "button", "Verify the log")
		b.Sees(t, "The log is sound")
		fits(t, b, "a verified log", name, width)
		pictured(t, b, "audit-verified", width, dark)
		b.Goto(t, a.address+"/runs/run_0")
		fits(t, b, "a page that does not exist", name, width)
		b.NoProblems(t, "404 (Not Found)")
	}
	announces(t, b, a, host)
	b.Goto(t, a.address+"/questions")
	b.Click(t, "link", "notes/write_note")
	b.Click(t, "button", "Deny")
	if got := ended(); got.OK {
		t.Errorf("the program was denied its call, and got %+v", got)
	}
}

// everyPage returns the paths of the pages that can be reached, without those that only differ in a filter.
func everyPage(t *testing.T, b *browser.Browser, a *airlock) []string {
	t.Helper()
	var paths []string
	queue := []string{"/overview", "/tools/changes", "/runs?text=nothing+like+this", "/audit?tool=none", "/tools?q=zzz"}
	for len(queue) > 0 && len(paths) < 60 {
		path := queue[0]
		queue = queue[1:]
		if slices.Contains(paths, path) {
			continue
		}
		paths = append(paths, path)
		b.Goto(t, a.address+path)
		var next []string
		b.Evaluate(t, links, &next)
		for _, one := range next {
			if !strings.Contains(one, "?") || strings.HasPrefix(one, "/tools/one") {
				queue = append(queue, one)
			}
		}
	}
	for _, want := range []string{"/runs/run_", "/questions/apr_", "/tools/one", "/agents/", "/tokens", "/health"} {
		if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, want) }) {
			t.Fatalf("no page %s… is reached: %q", want, paths)
		}
	}
	return paths
}

// fits fails for violations of axe's rules, and for a page that is wider than the screen or endless.
func fits(t *testing.T, b *browser.Browser, path, name string, width int) {
	t.Helper()
	for _, violation := range b.Axe(t) {
		t.Errorf("%s at %s: %s", path, name, violation)
	}
	var size struct{ Width, Height int }
	const measure = `(({scrollWidth: Width, scrollHeight: Height}) => ({Width, Height}))(document.documentElement)`
	b.Evaluate(t, measure, &size)
	if size.Width > width || size.Height > 8000 {
		t.Errorf("%s at %s: it has %d × %d px", path, name, size.Width, size.Height)
	}
	b.NoProblems(t, "404 (Not Found)")
}

// announces fails if the browser does not announce a question that is asked while a page is open.
func announces(t *testing.T, b *browser.Browser, a *airlock, host *mcp.ClientSession) {
	t.Helper()
	b.Goto(t, a.address+"/overview")
	var done bool
	b.Evaluate(t, `(() => {
		window.Notification = class {
			static permission = "granted";
			constructor(title) { document.body.append("announced: " + title); }
		};
		return true;
	})()`, &done)
	second := begin(t, host, `from servers.notes import write_note
await write_note({"title": "Second"})
`)
	b.Sees(t, "2 waiting", "announced: 2 calls wait for you")
	var title string
	b.Evaluate(t, `document.title`, &title)
	if !strings.HasPrefix(title, "(2) ") {
		t.Errorf("got the title %q", title)
	}
	b.Goto(t, a.address+"/questions")
	b.Do(t, "taps", map[string]any{"selector": "main tbody tr:last-child a"})
	b.Click(t, "button", "Deny")
	if got := second(); got.OK {
		t.Errorf("the second program was denied its call, and got %+v", got)
	}
}
