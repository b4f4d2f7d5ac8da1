package contained

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli"
	"github.com/airlock-mcp/airlock/app/daemon"
)

// Issue 30: doctor, `servers list` and the console show for each server whether it is contained, the hosts that it may
// reach, and those that it reached. The page Policies explains its connections.
func TestServersAreShown(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello "+r.Host)
	}))
	defer site.Close()
	l := open(t, fmt.Sprintf(`{network: ["api.example.com:80", "unpermitted.example.com:80"], mounts: [%q]}`,
		directory(t, owner)), permitExample, site.Listener.Addr().String())
	b := l.console()
	before := b.page("/servers", nil)
	if !strings.Contains(before, "may ask for api.example.com:80 unpermitted.example.com:80") ||
		strings.Contains(before, "reached") {
		t.Errorf("before its first connection: got %s", before)
	}
	l.call(`
import urllib.request
for host in ["api.example.com", "unpermitted.example.com"]:
    try: print(urllib.request.urlopen("http://" + host + "/", timeout=60).read().decode())
    except OSError as e: print("refused")
`)
	page := b.page("/servers", nil)
	for _, want := range []string{
		`<span class="state-ok">contained</span>`, "may ask for api.example.com:80 unpermitted.example.com:80",
		"sees /",
		"reached api.example.com:80: 1 connections", "1 refused to unpermitted.example.com:80", "no policy permits it",
		`<span class="state-bad">not contained</span>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page Servers has no %q: %s", want, page)
		}
	}
	for _, verb := range []string{"doctor", "servers list"} {
		said := l.command(strings.Fields(verb)...)
		for _, want := range []string{"other: not contained, has the rights of this user",
			"probe: contained, may ask for api.example.com:80 unpermitted.example.com:80, sees /",
			", reached api.example.com:80, was refused unpermitted.example.com:80"} {
			if verb == "servers list" { // a table
				want = map[byte]string{'o': "not contained", 'p': "contained",
					',': "reached api.example.com:80"}[want[0]]
			}
			if !strings.Contains(said, want) {
				t.Errorf("%s has no %q: %s", verb, want, said)
			}
		}
	}
	for form, want := range map[[2]string]string{
		{"api.example.com:80", "probe"}:         "the contained server probe to api.example.com:80: happens",
		{"unpermitted.example.com:80", "probe"}: "because no policy permits it",
		{"other.example.com:80", "probe"}:       "refused, because the configuration does not list it",
		{"api.example.com:80", "other"}:         "There is no contained server of this name.",
		{"api.example.com:80", ""}:              "because no policy permits it",
		{"169.254.169.254:80", "probe"}:         "is not a host's name",
		{"api.example.com", "probe"}:            "is not NAME:PORT",
	} {
		got := b.page("/policies/connect", url.Values{"host": {form[0]}, "server": {form[1]}})
		if !strings.Contains(got, want) {
			t.Errorf("Explain the connection, %q: no %q: %s", form, want, got)
		}
	}
}

// command runs a command and returns what it wrote.
func (l *lab) command(args ...string) string {
	l.t.Helper()
	var said bytes.Buffer
	cli.Main(l.t.Context(), append(args, "--config", l.config.File), nil, &said, &said)
	return said.String()
}

// browser is somebody who has signed in to the console.
type browser struct {
	*lab
	client *http.Client
	url    string
}

// console serves the system as a daemon and signs in to its console.
func (l *lab) console() *browser {
	l.t.Helper()
	ctx, stop := context.WithCancel(l.t.Context())
	listener, err := daemon.Listen(ctx, l.config)
	if err != nil {
		l.t.Fatal(err)
	}
	b := &browser{l, &http.Client{}, "http://" + listener.Addr().String()}
	d, err := daemon.New(ctx, daemon.Options{Config: l.config, System: l.system, Version: "test", URL: b.url})
	if err != nil {
		l.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx, listener) }()
	l.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			l.t.Error(err)
		}
		if err := d.Close(); err != nil {
			l.t.Error(err)
		}
	})
	if b.client.Jar, err = cookiejar.New(nil); err != nil {
		l.t.Fatal(err)
	}
	link, err := daemon.ConsoleLink()
	if err != nil {
		l.t.Fatal(err)
	}
	_, code, _ := strings.Cut(link.URL, "code=")
	b.page("/link", url.Values{"code": {code}})
	return b
}

var formToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// page requests a page, or sends a form with the token of the page Policies, and returns its text.
func (b *browser) page(path string, form url.Values) string {
	b.t.Helper()
	ask := func() (*http.Response, error) { return b.client.Get(b.url + path) }
	if form != nil {
		if path != "/link" {
			if found := formToken.FindStringSubmatch(b.page("/policies", nil)); found != nil {
				form.Set("csrf", html.UnescapeString(found[1]))
			}
		}
		ask = func() (*http.Response, error) { return b.client.PostForm(b.url+path, form) }
	}
	res, err := ask()
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return html.UnescapeString(string(body))
}
