package console

import (
	"strings"
	"testing"
)

// signIn signs a browser in with a token, through the form.
func (b *browser) signIn(t *testing.T, a *airlock, token string) {
	t.Helper()
	b.open(t, a.address+"/")
	b.fill(t, "Token", token)
	b.click(t, "button", "Sign in")
	b.sees(t, "Sign out")
}

// The sign-in takes good tokens alone, and ends with its token.
func TestSignIn(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	b := openBrowser(t)
	b.open(t, a.address+"/health")
	b.fill(t, "Token", "airlock_0123456789")
	b.click(t, "button", "Sign in")
	b.sees(t, "The token is not valid")
	b.noProblems(t, "403 (Forbidden)") // the status of the answer
	b.fill(t, "Token", a.token(t, "ann", "run"))
	b.click(t, "button", "Sign in")
	b.sees(t, "Sandboxes kept ready") // the page that was asked for at first
	if status := b.open(t, a.address+"/audit"); status != 403 {
		t.Errorf("the audit log without its scope: got %d, want 403", status)
	}
	b.sees(t, "it needs the scope audit")
	b.noProblems(t, "403 (Forbidden)")

	list := a.prints(t, "tokens", "list")
	b.open(t, a.address+"/health")
	a.prints(t, "tokens", "revoke", strings.Fields(list)[0])
	b.do(t, "reaches", map[string]any{"path": "/sign-in"}) // by itself: the page is live
	b.noProblems(t, "401 (Unauthorized)", "Response Status Error Code 401")
}

// Each page is shown, has no problem, and has nothing to answer clicks but what a person
// can also reach by keyboard.
func TestEveryPage(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	b := openBrowser(t)
	for _, dark := range []bool{false, true} {
		b.begin(t, profile{Dark: dark})
		b.signIn(t, a, a.token(t, "ann", "admin"))
		var paths []string
		b.evaluate(t, `[...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href"))`, &paths)
		if len(paths) < 6 {
			t.Fatalf("the navigation has %q", paths)
		}
		for _, path := range paths {
			if status := b.open(t, a.address+path); status != 200 {
				t.Errorf("%s: got %d", path, status)
			}
			var ground string
			b.evaluate(t, `getComputedStyle(document.body).backgroundColor`, &ground)
			if isDark := !strings.Contains(ground, "255, 255, 255"); isDark != dark {
				t.Errorf("%s: the ground is %s, dark is %t", path, ground, dark)
			}
			b.noProblems(t)
		}
	}
}
