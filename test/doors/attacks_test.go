package doors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Names of attachments that try to reach a directory, a header or a page (issue 23).
var hostileNames = []string{
	"../../../etc/passwd", `..\..\boot.ini`, "/etc/shadow", "x\r\nSet-Cookie: airlock-console=planted",
	`a"; filename="b.html`,
	"photo\u202egnp.exe", "<script>alert(1)</script>.svg", "%0d%0aX-Planted: 1", "%2e%2e%2fpasswd", ".htaccess", "..",
	"",
	"name\x00.html", "a;b=c", strings.Repeat("a", 5000) + ".html", "\u00e9\u4e2d.txt",
}

// Attachments with hostile names are saved as files of their directory, and no browser displays them.
func TestAttachmentsWithHostileNames(t *testing.T) {
	d := start(t)
	var code strings.Builder
	for i, name := range hostileNames {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&code, "try:\n    client.attach(b'<html>%d', 'text/plain', %s)\nexcept Exception:\n    pass\n", i,
			quoted)
	}
	code.WriteString("result = 1")
	host := d.host("owner", "/mcp", eras[0])
	run := d.made(calls(d, host, "run_code", map[string]any{"language": "python", "code": code.String()}),
		`"run_id":"([^"]+)"`)
	b := d.browser("owner")
	_, page := b.page("/runs/" + run)
	links := regexp.MustCompile(`href="(/runs/[^"]+/files/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < len(hostileNames)/2 {
		t.Fatalf("the page has %d files: %s", len(links), page)
	}
	for _, link := range links {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+html.UnescapeString(link[1]), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := b.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "<html>") {
			t.Errorf("%s: got %d %s, %v", link[1], response.StatusCode, body, err)
		}
		h := response.Header
		kind, parameters, err := mime.ParseMediaType(h.Get("Content-Disposition"))
		name := parameters["filename"]
		if err != nil || kind != "attachment" || name == "" || len(parameters) != 1 || name == ".." ||
			strings.ContainsAny(name, "/\\\r\n\x00\u202e") {
			t.Errorf("%s: got the disposition %q, %v", link[1], h.Get("Content-Disposition"), err)
		}
		if h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") || h.Get("Set-Cookie") != "" ||
			h.Get("X-Planted") != "" {
			t.Errorf("%s: got the header %v", link[1], h)
		}
	}
	for _, path := range []string{"..%2f..%2fetc%2fpasswd", "%2e%2e", "..", "%00", "table.csv%00", "%252e%252e%252f"} {
		if status, body := b.page("/runs/" + run + "/files/" + path); status == http.StatusOK ||
			strings.Contains(body, "<html>0") {
			t.Errorf("the path %s: got %d %s", path, status, body)
		}
	}
}

// Issue 23: the token of a host approved the host's own call, because it could sign in to the console with it. Neither
// it nor a token that was made with it can; the person who made the host's token can.
func TestATokenDoesNotApproveItsOwnCalls(t *testing.T) {
	d := start(t)
	d.tokens["host"] = strings.TrimSpace(d.prints("tokens", "create", "host", "--for", "ann", "--scope", "admin"))
	makes := func(with string) string {
		_, page := d.browser(with).post("/tokens", url.Values{"name": {"made"}, "principal": {"ann"},
			"scope": {"admin"}, "life": {"1 day"}})
		return d.made(page, `(airlock_[A-Za-z0-9_-]+)`)
	}
	d.tokens["its token"] = makes("host")
	asks := func(who string) string {
		return d.questionOf(d.made(calls(d, d.host(who, "/mcp", eras[1]), "run_code",
			map[string]any{"language": "python", "code": asking, "background": true}), `"run_id":"([^"]+)"`))
	}
	for _, test := range []struct {
		asks, says string
		status     int
	}{{"host", "host", http.StatusForbidden}, {"host", "its token", http.StatusForbidden},
		{"its token", "its token", http.StatusForbidden}, {"its token", "host", http.StatusSeeOther},
		{"host", "administrator", http.StatusSeeOther}} {
		question := asks(test.asks)
		_, page := d.browser(test.says).page("/questions/" + question)
		offers := strings.Contains(page, `value="allow`)
		for _, answer := range []string{"allow", "allow-run", "allow-session"} {
			status, body := d.browser(test.says).post("/questions/"+question,
				url.Values{"answer": {answer}, "digest": {d.made(page, `name="digest" value="([^"]+)"`)}})
			if status != test.status || offers != (test.status == http.StatusSeeOther) {
				t.Errorf("%s asks, %s says %s: got %d %s, and a button is offered: %t", test.asks, test.says, answer,
					status, body, offers)
			}
			if status == http.StatusSeeOther {
				break
			}
			if status, body := d.post(test.says, "/v1/approvals/"+question, `{"decision": "approve", "digest": "`+
				d.made(page, `name="digest" value="([^"]+)"`)+`"}`); status != http.StatusForbidden {
				t.Errorf("%s asks, %s says yes over the API: got %d %s", test.asks, test.says, status, body)
			}
		}
	}
}

// Two tabs, and a button that is pressed often, answer a question once: the call is made once.
func TestTwoTabsAnswerOnce(t *testing.T) {
	var made atomic.Int32
	server := mcp.NewServer(&mcp.Implementation{Name: "alpha", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "change", Description: "Changes something."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			made.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
	d := startWith(t, served(t, server))
	host := d.host("owner", "/mcp", eras[0])
	run := d.made(calls(d, host, "run_code", map[string]any{"language": "python", "code": asking, "background": true}),
		`"run_id":"([^"]+)"`)
	tab := d.browser("administrator")
	var path string
	d.settles("nobody is asked", func() bool {
		_, body := tab.page("/runs/" + run)
		found := regexp.MustCompile(`/questions/apr_[^"/?]+`).FindString(body)
		path = found
		return found != ""
	})
	_, page := tab.page(path)
	digest, csrf := d.made(page, `name="digest" value="([^"]+)"`), d.made(page, `name="csrf" value="([^"]+)"`)
	var pressed sync.WaitGroup
	for range 20 {
		pressed.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+path, strings.NewReader(
				url.Values{"answer": {"allow"}, "digest": {digest}, "csrf": {csrf}}.Encode()))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			response, err := tab.client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			response.Body.Close()
			if response.StatusCode != http.StatusSeeOther {
				t.Errorf("a press is answered %s", response.Status)
			}
		})
	}
	pressed.Wait()
	d.settles("the run does not end", func() bool {
		return strings.Contains(calls(d, host, "get_run", map[string]any{"run_id": run}), `"done"`)
	})
	if got := made.Load(); got != 1 {
		t.Errorf("the call was made %d times, want once", got)
	}
	if log := d.prints("audit", "tail", "-n", "100", "--json"); strings.Count(log, `"kind":"approval"`) > 2 {
		t.Errorf("the question has more than one answer in the log: %s", log)
	}
}

// giant answers tools/list with what list writes for a cursor.
func giant(t *testing.T, list func(w io.Writer, cursor string)) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch asked.Method {
		case "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{"tools":{}},"serverInfo":{"name":"giant","version":"1"}}}`, asked.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[`, asked.ID)
			list(w, asked.Params.Cursor)
			fmt.Fprint(w, `}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(web.Close)
	return web.URL
}

const tool = `{"name":"tool_%d","description":"Does it.","inputSchema":{"type":"object"}}`

// Servers whose lists of tools are giant, endless or cyclic cost a bounded amount, and the tools of the
// other servers can be used.
func TestGiantToolLists(t *testing.T) {
	var asked atomic.Int32
	lists := map[string]struct {
		list func(w io.Writer, cursor string)
		want string
	}{
		"cyclic": {func(w io.Writer, cursor string) {
			next := map[string]string{"": "a", "a": "b", "b": "a"}[cursor]
			fmt.Fprintf(w, tool+`],"nextCursor":%q`, 1, next)
		}, "the server began again"},
		"endless": {func(w io.Writer, _ string) {
			n := asked.Add(1)
			fmt.Fprintf(w, tool+`],"nextCursor":"%d"`, n, n)
		}, "it has more than 200 pages"},
		"many": {func(w io.Writer, _ string) {
			for i := range 100_000 {
				if i > 0 {
					io.WriteString(w, ",")
				}
				fmt.Fprintf(w, tool, i)
			}
			io.WriteString(w, "]")
		}, "tools only the first 10000 are used"},
		"large": {func(w io.Writer, _ string) {
			padding := strings.Repeat("x", 1<<20)
			fmt.Fprint(w, `{"name":"tool","inputSchema":{"type":"object"},"description":"`)
			for range 100 {
				io.WriteString(w, padding)
			}
			fmt.Fprint(w, `"}]`)
		}, "a page is larger than"},
	}
	text := fmt.Sprintf("mcpServers:\n  alpha: {url: %q}\n", startServer(t, "alpha"))
	for name, list := range lists {
		text += fmt.Sprintf("  %s: {url: %q}\n", name, giant(t, list.list))
	}
	d := serve(t, text+"profiles: {small: {servers: [alpha]}}\n")
	for name, list := range lists {
		var page string
		d.settles("the server "+name+" is still starting", func() bool {
			_, page = d.browser("administrator").page("/servers")
			_, row, found := strings.Cut(page, `<th scope="row">`+name)
			row, _, _ = strings.Cut(row, "</tr>")
			page = row
			return found && !strings.Contains(row, "starting")
		})
		if !strings.Contains(page, list.want) {
			t.Errorf("%s: got %s, want %q", name, page, list.want)
		}
	}
	if got := asked.Load(); got > 3*200 { // a list may be read again
		t.Errorf("the endless list was asked for %d pages", got)
	}
	if got := calls(d, d.host("owner", "/mcp", eras[0]), "get_tool_definition",
		map[string]any{"server": "alpha", "tool": "look"}); !strings.Contains(got, "look in alpha") {
		t.Errorf("the tool of another server: got %s", got)
	}
}

// Issue 23: an error about a resource repeated a URI with a secret, and sign-ins that strangers do not finish kept a
// person with a valid token from signing in.
func TestStrangersAndSecretsInRequests(t *testing.T) {
	d := start(t)
	secret := "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
	for _, revision := range eras {
		for _, face := range []string{"/mcp", "/kernel/mcp"} {
			host := d.host("owner", face, revision)
			for _, uri := range []string{"airlock://runs/" + secret + "/x", "x://" + secret,
				"vfs://" + secret + "/\x01"} {
				_, err := host.ReadResource(d.Context(), &mcp.ReadResourceParams{URI: uri})
				var refused *jsonrpc.Error
				if !errors.As(err, &refused) || strings.Contains(refused.Message+string(refused.Data), secret) {
					t.Errorf("%s, %s: reading %q: got %v", face, revision, uri, err)
				}
			}
		}
	}
	address := strings.TrimPrefix(d.url, "http://")
	for range 501 { // one more than an account may have
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /sign-in HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
			"Content-Length: 100\r\n\r\ntok", address)
	}
	d.settles("the unfinished requests are not counted", func() bool {
		r, err := http.NewRequestWithContext(d.Context(), http.MethodGet, d.url+"/sign-in", nil)
		if err != nil {
			t.Fatal(err)
		}
		status, _ := d.do(http.DefaultClient, r)
		return status == http.StatusTooManyRequests
	})
	if status, body := d.newBrowser().send("/sign-in",
		url.Values{"token": {"airlock_" + strings.Repeat("0", 64)}}); status != http.StatusTooManyRequests {
		t.Errorf("a stranger: got %d %s", status, body)
	}
	if status, body := d.browser("administrator").page("/tokens"); status != http.StatusOK {
		t.Errorf("a person who signs in meanwhile: got %d %s", status, body)
	}
}
