package contained

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/orchestrator"
)

const permitCode = `
@id("example") permit (principal, action == Action::"connect", resource) when { resource.name like "*.example.com" };
@id("closed") @reason("it is closed today") forbid (principal, action == Action::"connect", resource)
when { resource.name == "forbidden.example.com" };
@id("unpermitted") forbid (principal, action == Action::"connect", resource)
when { resource.name == "unpermitted.example.com" };
`

// run runs code and returns its result, or the error.
func (l *lab) run(language, code, profile string, network ...string) string {
	l.t.Helper()
	who := user()
	who.Profile = profile
	outcome, err := l.system.Orchestrator().Run(l.t.Context(), orchestrator.Request{Language: language,
		Code: []byte(code), Caller: who, Network: network})
	if err != nil {
		return "error: " + err.Error()
	}
	if failure := outcome.Envelope.Result.Error; failure != nil {
		return "error: " + failure.Message
	}
	return string(outcome.Envelope.Result.Data)
}

// Issue 30, rows C-019 and C-079: code reaches the named host that configuration, run and policy all name. An address,
// another host, a redirect and the metadata service are not reached, and the error names the rule.
func TestCodeReachesNamedHosts(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello "+r.Host)
	}))
	defer site.Close()
	l := open(t, "true", permitCode, site.Listener.Addr().String())
	all := []string{"api.example.com:80", "forbidden.example.com:80", "unpermitted.example.com:80"}
	for _, program := range []struct{ name, language, code string }{
		{"urllib", "python", "import urllib.request\nresult = urllib.request.urlopen(%q, timeout=60).read().decode()"},
		{"requests", "python", "import requests\nresult = requests.get(%q, timeout=60).text"},
		{"a session of requests", "python", "import requests\nwith requests.Session() as s:\n" +
			"    result = s.get(%q, timeout=60).text"},
		{"httpx", "python", "import httpx\nresult = httpx.get(%q, timeout=60, follow_redirects=True).text"},
		{"httpx with asyncio", "python", "import httpx\nasync with httpx.AsyncClient(timeout=60, " +
			"follow_redirects=True) as c:\n    result = (await c.get(%q)).text"},
		{"fetch", "node", "globalThis.result = await (await fetch(%q)).text();"},
		{"node:http", "node", `import http from "node:http";
const get = (url) => new Promise((resolve, reject) => http.get(url, async (answer) => {
	if (answer.headers.location) return resolve(get(answer.headers.location));
	resolve(Buffer.concat(await answer.toArray()).toString());
}).on("error", reject));
globalThis.result = await get(%q);`},
	} {
		language, code := program.language, program.code
		for url, want := range map[string]string{
			"http://api.example.com/":                  `"hello api.example.com"`,
			"http://forbidden.example.com/":            "policy closed (policy.cedar:4) forbids it: it is closed today",
			"http://unpermitted.example.com/":          "policy unpermitted (policy.cedar:6) forbids it",
			"http://unlisted.example.com/":             `"unlisted.example.com" is not in the network list of the run`,
			"http://api.example.com:8080/":             `"api.example.com:8080" is not in the network list of the run`,
			"http://169.254.169.254/latest/meta-data/": "connect by name",
			"http://10.0.0.1/":                         "connect by name",
			"http://api.example.com/redirect":          "connect by name",
		} {
			got := l.run(language, fmt.Sprintf(code, url), "", all...)
			if !strings.Contains(got, want) || strings.HasPrefix(want, `"hello`) && got != want {
				t.Errorf("%s, %s: got %q, want %q", program.name, url, got, want)
			}
		}
		got := l.run(language, fmt.Sprintf(code, "http://api.example.com/"), "")
		if !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: a run that asks for no host: got %q", program.name, got)
		}
	}
	for profile, want := range map[string]string{"": "no run may ask for other.example.com:80",
		"closed": "no run may ask for api.example.com:80"} {
		host := map[string]string{"": "other.example.com:80", "closed": "api.example.com:80"}[profile]
		if got := l.run("python", "result = 1", profile, host); !strings.Contains(got, want) {
			t.Errorf("the profile %q: got %q, want %q", profile, got, want)
		}
	}
}

// Issue 30: code that catches the error of a library learns the rule, too.
func TestCaughtRefusalsAreNamed(t *testing.T) {
	l := open(t, "true", permitCode, "127.0.0.1:9")
	for language, code := range map[string]string{
		"python": `
import requests
try: requests.get("http://forbidden.example.com/", timeout=60)
except requests.ConnectionError: result = "caught"
`,
		"node": `try { await fetch("http://forbidden.example.com/") } catch { globalThis.result = "caught" }`,
	} {
		outcome, err := l.system.Orchestrator().Run(l.t.Context(), orchestrator.Request{Language: language,
			Code: []byte(code), Caller: user(), Network: []string{"forbidden.example.com:80"}})
		if err != nil {
			t.Fatal(err)
		}
		const want = "policy closed (policy.cedar:4) forbids it: it is closed today"
		if e := outcome.Envelope; string(e.Result.Data) != `"caught"` || !strings.Contains(e.Note, want) {
			t.Errorf("%s: got %s with the note %q, want %q", language, e.Result.Data, e.Note, want)
		}
	}
}
