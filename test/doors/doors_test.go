// Package doors has callers try every object through every door of the real program.
package doors

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// daemon is airlock serve with two servers, alpha and beta. Only alpha is in the profile small.
type daemon struct {
	*testing.T
	program, file, url string
	stop               func() // ends the program; it may be called twice
	said               *testenv.Output
	tokens             map[string]string              // of each caller
	browsers           map[string]*browser            // of each caller
	hosts              map[hostKey]*mcp.ClientSession // nil if the caller may not connect

	chat  *chat
	link  string            // the code of a link of a message that nobody has used
	grant map[string]string // one that is in force, by who gave it
	known map[string]bool   // all grants

	cancelled map[string]string // a suspended run that nobody has cancelled, by revision
}

// chat receives the messages about questions.
type chat struct {
	mu    sync.Mutex
	links map[string]string // the codes of the links, by the questions
}

func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct{ Data struct{ ID, URL string } }
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, code, _ := strings.Cut(message.Data.URL, "code=")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links[message.Data.ID] = code
	w.WriteHeader(http.StatusNoContent)
}

func (c *chat) linkTo(question string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[question]
}

// hostKey is a caller at an MCP face in a revision.
type hostKey struct{ who, face, revision string }

// callers are the columns of the table in docs/serving.md, in their order. A narrower token has all
// scopes but the one that the object needs.
var callers = map[string][]string{
	"owner":                   {"--for", "ann", "--scope", "run,approve,audit,agents"},
	"owner, profile":          {"--for", "ann", "--scope", "run,approve,audit,agents", "--profile", "small"},
	"other":                   {"--for", "bob", "--scope", "run,approve,audit,agents"},
	"other, role":             {"--for", "carl", "--scope", "run,approve,audit,agents"},
	"without run":             {"--for", "ann", "--scope", "approve,audit,agents"},
	"with run only":           {"--for", "ann", "--scope", "run"},
	"administrator":           {"--for", "root", "--scope", "admin"},
	"administrator, profile":  {"--for", "root", "--scope", "admin", "--profile", "small"},
	"owner, without approval": {"--for", "ann", "--scope", "run,audit,agents"},
}

const configuration = `mcpServers:
  alpha:
    url: %q
  beta:
    url: %q
servers: {alpha: {trustAnnotations: true}, beta: {trustAnnotations: true}}
profiles: {small: {servers: {alpha: ["*"]}}}
replay: {keep: 1h}
sandbox: {maxSandboxes: 12, pool: 0}
auth: {roles: {support: {principals: [carl]}}}
policies: [%q]
approvals: {webhooks: {chat: {url: %q, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}}
`

// rules ask the owner about changes in alpha, and the role about those in beta.
const rules = `permit(principal, action, resource) when { resource.risk == "read" };
@approve("owner") permit(principal, action == Action::"alpha/change", resource);
@approve("support") permit(principal, action == Action::"beta/change", resource);
`

// serve starts the program with the image for Python and further ones, and makes a token for each caller.
func serve(t *testing.T, configuration string, images ...string) *daemon {
	t.Helper()
	testenv.OwnHome(t, append(images, "python")...)
	d := &daemon{T: t, program: filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), said: &testenv.Output{},
		file: filepath.Join(t.TempDir(), "airlock.yaml"), tokens: map[string]string{},
		browsers: map[string]*browser{}, hosts: map[hostKey]*mcp.ClientSession{}}
	if err := os.WriteFile(d.file, []byte(configuration+testenv.HostIsAProxy), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(configuration, "small") {
		for who, flags := range callers {
			d.tokens[who] = strings.TrimSpace(d.prints(append([]string{"tokens", "create", "x"}, flags...)...))
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("airlock said:\n%s", d.said)
		}
		d.stop()
	})
	d.begin()
	return d
}

// begin starts the program.
func (d *daemon) begin() {
	d.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := d.command(ctx, "serve", "--listen", "127.0.0.1:0")
	command.Env = append(os.Environ(), "QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	stdout, err := command.StdoutPipe()
	if err != nil {
		d.Fatal(err)
	}
	if err := command.Start(); err != nil {
		d.Fatal(err)
	}
	d.stop = sync.OnceFunc(func() {
		cancel()
		command.Wait() // it was interrupted
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		d.Fatalf("%v\n%s", err, d.said)
	}
	d.url = strings.TrimSpace(line)
	clear(d.browsers)
	clear(d.hosts)
}

func (d *daemon) command(ctx context.Context, args ...string) *exec.Cmd {
	if args[0] != "approvals" && !slices.Contains(args, "suspend") { // they depend only on the state directory
		args = append(args, "--config", d.file)
	}
	command := exec.CommandContext(ctx, d.program, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Stderr = d.said
	return command
}

// prints runs a verb at a terminal and returns what it prints.
func (d *daemon) prints(args ...string) string {
	d.Helper()
	out, err := testenv.AtTerminal(d.T, d.command(d.Context(), args...)).Output()
	if err != nil {
		d.Fatalf("airlock %q: %v\n%s\n%s", args, err, out, d.said)
	}
	return string(out)
}

// get requests a path with the token of a caller.
func (d *daemon) get(who, path string) (status int, body string) {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), http.MethodGet, d.url+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.tokens[who])
	return d.do(http.DefaultClient, r)
}

func (d *daemon) do(client *http.Client, r *http.Request) (status int, body string) {
	d.Helper()
	response, err := client.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		d.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// host returns the session of a caller at a face, or nil if it may not connect.
func (d *daemon) host(who, face, revision string) *mcp.ClientSession {
	d.Helper()
	key := hostKey{who, face, revision}
	if session, known := d.hosts[key]; known {
		return session
	}
	d.hosts[key] = d.connects(who, face, revision)
	return d.hosts[key]
}

// connects opens a session of a caller at a face, or returns nil if it may not connect.
func (d *daemon) connects(who, face, revision string) *mcp.ClientSession {
	d.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(d.Context(),
		&mcp.StreamableClientTransport{Endpoint: d.url + face,
			HTTPClient: testenv.Bearer(d.tokens[who])},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil
	}
	d.Cleanup(func() { session.Close() }) // a server that is gone needs no goodbye
	return session
}

// calls calls a tool and returns the answer as text, or "" if it is an error.
func calls(d *daemon, session *mcp.ClientSession, tool string, arguments any) string {
	if session == nil {
		return ""
	}
	result, err := session.CallTool(d.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil || result.IsError {
		return ""
	}
	raw, err := json.Marshal(result)
	if err != nil {
		d.Fatal(err)
	}
	return string(raw)
}

// reads reads a resource, or returns "".
func reads(d *daemon, session *mcp.ClientSession, uri string) string {
	if session == nil {
		return ""
	}
	result, err := session.ReadResource(d.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return ""
	}
	raw, err := json.Marshal(result)
	if err != nil {
		d.Fatal(err)
	}
	return string(raw)
}

// browser is a browser that is signed in to the console.
type browser struct {
	*daemon
	client *http.Client
}

// browser signs a caller in, once.
func (d *daemon) browser(who string) *browser {
	d.Helper()
	if b := d.browsers[who]; b != nil {
		return b
	}
	b := d.newBrowser()
	if status, body := b.send("/sign-in", url.Values{"token": {d.tokens[who]}}); status != http.StatusSeeOther {
		d.Fatalf("signing in: got %d %s", status, body)
	}
	d.browsers[who] = b
	return b
}

func (d *daemon) newBrowser() *browser {
	d.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.Fatal(err)
	}
	return &browser{d, &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (b *browser) page(path string) (status int, body string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	return b.do(b.client, r)
}

func (b *browser) send(path string, form url.Values) (status int, body string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(b.client, r)
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// post sends a form with the token of the session's forms.
func (b *browser) post(path string, form url.Values) (status int, body string) {
	b.Helper()
	_, page := b.page("/health")
	found := csrfField.FindStringSubmatch(page)
	if found == nil {
		b.Fatalf("no form in %s", page)
	}
	form.Set("csrf", found[1])
	return b.send(path, form)
}

// startServer serves two tools: one that reads, and one that asks a person.
func startServer(t *testing.T, name string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	type none struct{}
	for tool, readOnly := range map[string]bool{"look": true, "change": false} {
		mcp.AddTool(server, &mcp.Tool{Name: tool, Description: tool + " in " + name,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
			})
	}
	return served(t, server)
}

// served returns the URL at which a server is reached.
func served(t *testing.T, server *mcp.Server) string {
	t.Helper()
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(web.Close)
	return web.URL
}

// made returns the first group of a pattern in a text.
func (d *daemon) made(text, pattern string) string {
	d.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		d.Fatalf("got %s, want %s", text, pattern)
	}
	return found[1]
}

// settles runs a check again until it holds, for at most a minute.
func (d *daemon) settles(what string, check func() bool) {
	d.Helper()
	limited, cancel := context.WithTimeout(d.Context(), time.Minute)
	defer cancel()
	for !check() {
		if limited.Err() != nil {
			d.Fatal(what)
		}
	}
}

func start(t *testing.T, images ...string) *daemon {
	return startWith(t, startServer(t, "alpha"), images...)
}

// startWith serves alpha at another URL.
func startWith(t *testing.T, alpha string, images ...string) *daemon {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.cedar")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	received := &chat{links: map[string]string{}}
	web := httptest.NewServer(received)
	t.Cleanup(web.Close)
	d := serve(t, fmt.Sprintf(configuration, alpha, startServer(t, "beta"), file, web.URL), images...)
	d.chat, d.known = received, map[string]bool{}
	d.grant, d.cancelled = map[string]string{}, map[string]string{}
	return d
}
