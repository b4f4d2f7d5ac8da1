package console

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/test/browser"
)

// signIn signs a browser in with a token, through the form.
func signIn(t *testing.T, b *browser.Browser, a *airlock, token string) {
	t.Helper()
	b.Goto(t, a.address+"/")
	b.Fill(t, "Token", token)
	b.Click(t, "button", "Sign in")
	b.Sees(t, "Sign out")
}

// The sign-in takes good tokens alone, and ends with its token.
func TestSignIn(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	b := browser.Open(t)
	b.Goto(t, a.address+"/health")
	b.Fill(t, "Token", "airlock_0123456789")
	b.Click(t, "button", "Sign in")
	b.Sees(t, "The token is not valid")
	b.NoProblems(t, "403 (Forbidden)") // the status of the answer
	b.Fill(t, "Token", a.token(t, "ann", "run"))
	b.Click(t, "button", "Sign in")
	b.Sees(t, "Sandboxes in the pool") // the page that was asked for at first
	if status := b.Goto(t, a.address+"/audit"); status != 403 {
		t.Errorf("the audit log without its scope: got %d, want 403", status)
	}
	b.Sees(t, "it needs the scope audit")
	b.NoProblems(t, "403 (Forbidden)")

	list := a.prints(t, "tokens", "list")
	b.Goto(t, a.address+"/health")
	a.prints(t, "tokens", "revoke", strings.Fields(list)[0])
	b.Do(t, "reaches", map[string]any{"path": "/sign-in"}) // by itself: the page is live
	b.NoProblems(t, "401 (Unauthorized)", "Response Status Error Code 401")
}

// Each page is shown, has no problem, and has nothing to answer clicks but what a person
// can also reach by keyboard.
func TestEveryPage(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	b := browser.Open(t)
	for _, dark := range []bool{false, true} {
		b.Begin(t, browser.Profile{Dark: dark})
		signIn(t, b, a, a.token(t, "ann", "admin"))
		var paths []string
		b.Evaluate(t, `[...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href"))`, &paths)
		if len(paths) < 6 {
			t.Fatalf("the navigation has %q", paths)
		}
		for _, path := range paths {
			if status := b.Goto(t, a.address+path); status != 200 {
				t.Errorf("%s: got %d", path, status)
			}
			var ground string
			b.Evaluate(t, `getComputedStyle(document.body).backgroundColor`, &ground)
			if isDark := !strings.Contains(ground, "255, 255, 255"); isDark != dark {
				t.Errorf("%s: the ground is %s, dark is %t", path, ground, dark)
			}
			b.NoProblems(t)
		}
	}
}
