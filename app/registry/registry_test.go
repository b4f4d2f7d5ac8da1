package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// serve returns the client of a registry that gives one answer.
func serve(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client, err := New(server.URL+"/", secret.Value{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func answering(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, text)
	}
}

func TestHostileAnswersAreRefused(t *testing.T) {
	inside := httptest.NewServer(answering(`{"server":{"name":"a.b/c","version":"1.0.0"}}`))
	defer inside.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another server":  {answering(`{"server":{"name":"a.b/d","version":"1.0.0"}}`), "another server"},
		"another version": {answering(`{"server":{"name":"a.b/c","version":"1.0.1"}}`), "another version"},
		"no name":         {answering(`{"server":{"version":"1.0.0"}}`), "invalid name"},
		"a path as name":  {answering(`{"server":{"name":"a/../../b","version":"1.0.0"}}`), "invalid name"},
		"control characters": {answering(`{"server":{"name":"a.b/c\u001b[2J","version":"1.0.0"}}`),
			"invalid name"},
		"a range": {answering(`{"server":{"name":"a.b/c","version":"^1.0.0"}}`), "invalid version"},
		"a name twice": {answering(`{"server":{"name":"a.b/c","name":"a.b/d","version":"1.0.0"}}`),
			"twice in one object"},
		"not an object":  {answering(`[]`), "reading the answer"},
		"deep nesting":   {answering(`{"server":` + strings.Repeat("[", 1<<16)), "reading the answer"},
		"an endless one": {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "more than 4194304 bytes"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			"something that is not JSON"},
		"a failure":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "HTTP 500"},
		"a redirect": {http.RedirectHandler(inside.URL, http.StatusFound).ServeHTTP, "HTTP 302"},
		"deleted": {answering(`{"server":{"name":"a.b/c","version":"1.0.0"},
			"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted"}}}`), "it was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, c.answer).Get(t.Context(), "a.b/c", "1.0.0")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func endless(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for line := strings.Repeat(" ", 1<<16); ; {
		if _, err := fmt.Fprint(w, line); err != nil {
			return
		}
	}
}

func TestNamesAreOnePartOfThePath(t *testing.T) {
	var asked string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.EscapedPath()
		w.WriteHeader(http.StatusNotFound)
	})
	if _, err := client.Get(t.Context(), "a.b/c", "1.0.0+x/../y"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if want := "/v0.1/servers/a.b%2Fc/versions/1.0.0+x%2F..%2Fy"; asked != want {
		t.Errorf("got %s, want %s", asked, want)
	}
	if _, err := client.Get(t.Context(), "a.b/c/../d", "1"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v for an invalid name, want a refusal", err)
	}
}

// A search ends if the registry has a next page each time, and skips servers that are not valid.
func TestSearchEnds(t *testing.T) {
	page := 0
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		page++
		answering(fmt.Sprintf(`{"servers":[{"server":{"name":"a.b/c%d","version":"1.0.0"}},
			{"server":{"name":"bad name","version":"1"}}],"metadata":{"nextCursor":"%[1]d"}}`, page))(w, r)
	})
	servers, more, err := client.Search(t.Context(), "x")
	if err != nil || !more || len(servers) != maxPages || page != maxPages {
		t.Errorf("got %d servers of %d pages, more %t, %v; want %d", len(servers), page, more, err, maxPages)
	}
	client = serve(t, answering(`{"servers":[],"metadata":{"nextCursor":"same"}}`))
	if _, _, err := client.Search(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "repeats a page") {
		t.Errorf("got %v, want a refusal of the repeated page", err)
	}
}

// No text of a registry is expanded, becomes an option of a launcher, or leads to a private network. The review shows
// exactly what is written into the configuration.
func TestHostileOffersAreRefused(t *testing.T) {
	arguments := func(list string) string { return `,"packageArguments":[` + list + `]` }
	variables := func(list string) string { return `,"environmentVariables":[` + list + `]` }
	npm := func(more string) string {
		return `"packages":[{"registryType":"npm","identifier":"x","version":"1.0.0","transport":{"type":"stdio"}` +
			more + `}]`
	}
	for name, c := range map[string]struct{ offer, want string }{
		"a variable of this machine": {npm(arguments(`{"type":"positional","value":"${AWS_SECRET}"}`)), "variables"},
		"a variable as default":      {npm(variables(`{"name":"A","default":"${B}"}`)), "variables"},
		"a variable in a choice":     {npm(variables(`{"name":"A","choices":["${B}"]}`)), "variables"},
		"a variable within a variable": {npm(variables(
			`{"name":"A","value":"{v}","variables":{"v":{"default":"${B}"}}}`)), "variables"},
		"hidden characters":      {npm(arguments(`{"type":"positional","value":"a\u202eb"}`)), "hidden"},
		"a line break":           {npm(variables(`{"name":"A","value":"a\nb"}`)), "hidden"},
		"the name of a variable": {npm(variables(`{"name":"A=B","value":"a"}`)), "invalid"},
		"an option of the launcher": {npm(`,"runtimeArguments":[{"type":"named","name":"--call","value":"id"}]`),
			"options of npx"},
		"too many values": {npm(arguments(strings.Repeat(`{"type":"positional"},`, 64) + `{}`)), "more than 64"},
		"another registry": {npm(`,"registryBaseUrl":"https://evil.example"`),
			"not in https://registry.npmjs.org"},
		"a URL as package": {`"packages":[{"registryType":"npm","identifier":"https://evil.example/x.tgz",
			"version":"1.0.0","transport":{"type":"stdio"}}]`, "invalid"},
		"an option as package": {`"packages":[{"registryType":"pypi","identifier":"--index-url=x",
			"version":"1.0.0","transport":{"type":"stdio"}}]`, "invalid"},
		"the newest version": {`"packages":[{"registryType":"npm","identifier":"x","version":"latest",
			"transport":{"type":"stdio"}}]`, "not that of one release"},
		"a range": {`"packages":[{"registryType":"pypi","identifier":"x","version":">=1",
			"transport":{"type":"stdio"}}]`, "not that of one release"},
		"metadata of clouds": {`"remotes":[{"type":"streamable-http","url":"http://169.254.169.254/mcp"}]`,
			"private network"},
		"this machine": {`"remotes":[{"type":"streamable-http","url":"https://localhost/mcp"}]`,
			"private network"},
		"no encryption": {`"remotes":[{"type":"streamable-http","url":"http://example.com/mcp"}]`, "https://"},
		"a user":        {`"remotes":[{"type":"sse","url":"https://a:b@example.com/mcp"}]`, "a user"},
		"an address with a variable of this machine": {
			`"remotes":[{"type":"streamable-http","url":"https://example.com/${TOKEN}"}]`, "variables"},
		"a header": {`"remotes":[{"type":"streamable-http","url":"https://example.com/","headers":[
			{"name":"X","value":"${TOKEN}"}]}]`, "variables"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, answering(`{"server":{"name":"a.b/c","version":"1.0.0",`+c.offer+`}}`))
			server, err := client.Get(t.Context(), "a.b/c", Latest)
			if err != nil {
				t.Fatal(err)
			}
			public, err := New("https://registry.example.com", secret.Value{})
			if err != nil {
				t.Fatal(err)
			}
			offers := public.Offers(server)
			if len(offers) != 1 || !strings.Contains(offers[0].Refused, c.want) {
				t.Errorf("got %+v, want one that is refused with %q", offers, c.want)
			}
		})
	}
}

// The default of a variable cannot make an address lead to this machine.
func TestFilledAddressesAreChecked(t *testing.T) {
	client := serve(t, answering(`{"server":{"name":"a.b/c","version":"1.0.0","remotes":[{"type":"streamable-http",
		"url":"https://{host}/mcp","variables":{"host":{"default":"127.0.0.1"}}}]}}`))
	server, err := client.Get(t.Context(), "a.b/c", Latest)
	if err != nil {
		t.Fatal(err)
	}
	public, err := New("https://registry.example.com", secret.Value{})
	if err != nil {
		t.Fatal(err)
	}
	offer := public.Offers(server)[0]
	if _, err := offer.Entry(nil); err == nil || !strings.Contains(err.Error(), "private network") {
		t.Errorf("got %v, want a refusal", err)
	}
	entry, err := offer.Entry(map[string]string{"host": "mcp.example.com"})
	if err != nil || entry.URL != "https://mcp.example.com/mcp" {
		t.Errorf("got %+v, %v", entry, err)
	}
}
