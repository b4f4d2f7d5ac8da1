package doors

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Issue 23: a change that may permit more was confirmed at the command line only. The console shows the
// difference to administrators, and confirms exactly the content that it showed, for a person who may.
func TestAPersonConfirmsInTheConsole(t *testing.T) {
	const narrow = "permit(principal, action, resource) when { resource.risk == \"read\" };\n"
	rules := filepath.Join(t.TempDir(), "rules.cedar")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(narrow)
	d := serve(t, "mcpServers: {alpha: {url: "+startServer(t, "alpha")+"}}\npolicies: ["+rules+
		"]\nprofiles: {small: {servers: [alpha]}}\n")
	admin := d.browser("administrator")
	if _, body := admin.page("/configuration"); !strings.Contains(body, "Its files are confirmed") {
		t.Errorf("before the change: got %s", body)
	}
	write("permit(principal, action, resource);\n")
	d.settles("the change does not wait", func() bool {
		_, body := admin.page("/health")
		return strings.Contains(body, "may permit more than the one that was confirmed") &&
			strings.Contains(body, `href="/configuration"`)
	})
	_, body := admin.page("/configuration")
	for _, want := range []string{"may permit more: added: permit", `<span class="added">&#43;permit(principal, action`,
		"airlock trust"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q: %s", want, body)
		}
	}
	digest := d.made(body, `The digest is <code>([^<]+)<`)
	if strings.Contains(body, "Confirm this configuration") {
		t.Error("an administrator with a token gets the button")
	}
	for _, who := range []string{"owner", "administrator", "administrator, profile"} {
		if status, got := d.browser(who).post("/configuration/confirm",
			url.Values{"digest": {digest}}); status != http.StatusForbidden {
			t.Errorf("%s confirms: got %d %s", who, status, got)
		}
	}

	person := d.newBrowser()
	link, err := url.Parse(strings.TrimSpace(d.prints("console")))
	if err != nil {
		t.Fatal(err)
	}
	status, got := person.send("/link", url.Values{"code": {link.Query().Get("code")}})
	if status != http.StatusSeeOther {
		t.Fatalf("the link: got %d %s", status, got)
	}
	if status, got := person.send("/configuration/confirm",
		url.Values{"digest": {digest}}); status != http.StatusForbidden {
		t.Errorf("a form of another site: got %d %s", status, got)
	}
	write("permit(principal, action, resource);\n// changed after the person looked\n")
	if status, got := person.post("/configuration/confirm",
		url.Values{"digest": {digest}}); status != http.StatusConflict {
		t.Errorf("another content than the page showed: got %d %s", status, got)
	}
	_, body = person.page("/configuration")
	digest = d.made(body, `name="digest" value="([^"]+)"`)
	if status, got := person.post("/configuration/confirm",
		url.Values{"digest": {digest}}); status != http.StatusSeeOther {
		t.Errorf("the person confirms: got %d %s", status, got)
	}
	d.settles("the change is not in force", func() bool {
		_, shown := admin.page("/policies")
		return strings.Contains(shown, "changed after the person looked")
	})
	if _, body := admin.page("/health"); strings.Contains(body, "may permit more") {
		t.Errorf("the change still waits: %s", body)
	}
	if log := d.prints("audit", "tail", "-n", "100", "--json"); !strings.Contains(log,
		"is confirmed, digest "+digest) {
		t.Errorf("the log has no record of the confirmation: %s", log)
	}
}
