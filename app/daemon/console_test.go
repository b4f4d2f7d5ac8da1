package daemon

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
)

// page requests a page of the console, or sends a form, and follows redirects.
func page(t *testing.T, client *http.Client, address string, form url.Values) (int, string) {
	t.Helper()
	ask := client.Get
	if form != nil {
		ask = func(address string) (*http.Response, error) { return client.PostForm(address, form) }
	}
	res, err := ask(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// A link signs in the user that runs Airlock. The process that requests this link has no
// terminal of a person, so its session is read-only and cannot answer questions.
func TestALinkToTheConsole(t *testing.T) {
	s := serve(t, "")
	s.daemon.opts.URL = s.url
	link, err := ConsoleLink()
	if err != nil || !strings.HasPrefix(link.URL, s.url+"/link?code=") || link.Limited == "" {
		t.Fatalf("got %+v, %v", link, err)
	}
	b := browser(t)
	_, code, _ := strings.Cut(link.URL, "code=")
	if status, body := page(t, b, s.url+"/link", url.Values{"code": {code}}); status != http.StatusOK ||
		!strings.Contains(body, "Runs") || strings.Contains(body, `href="/questions"`) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := page(t, b, s.url+"/questions", nil); status != http.StatusForbidden ||
		!strings.Contains(body, "scope approve") {
		t.Errorf("questions: got %d %s", status, body)
	}
	if status, _ := page(t, browser(t), s.url+"/link", url.Values{"code": {code}}); status != http.StatusForbidden {
		t.Errorf("a second time: got %d, want 403", status)
	}
}

// A run of a host is shown in the console of its principal only.
func TestTheConsoleShowsRunsOfTheDaemon(t *testing.T) {
	s := serve(t, "")
	answer, text := s.run(s.connect(s.token("ann", auth.ScopeRun), revisions[1]),
		map[string]any{"language": "python", "code": "print('from inside')\nresult = 6 * 7"})
	id, _ := answer["run_id"].(string)
	if id == "" {
		t.Fatalf("got %v, %s", answer, text)
	}
	for who, want := range map[string]int{"ann": http.StatusOK, "bob": http.StatusNotFound} {
		b := browser(t)
		page(t, b, s.url+"/sign-in", url.Values{"token": {s.token(who, auth.ScopeRun)}})
		status, body := page(t, b, s.url+"/runs/"+id, nil)
		if status != want || (want == http.StatusOK) != strings.Contains(body, "from inside") {
			t.Errorf("%s: got %d, want %d: %s", who, status, want, body)
		}
	}
}

func TestTheConsoleCanBeSwitchedOff(t *testing.T) {
	s := serve(t, "serve: {console: false}")
	if status, _ := s.get("/"); status != http.StatusNotFound {
		t.Errorf("got %d, want 404", status)
	}
	if _, err := ConsoleLink(); err == nil || !strings.Contains(err.Error(), "serve.console") {
		t.Errorf("got %v, want that it is switched off", err)
	}
}
