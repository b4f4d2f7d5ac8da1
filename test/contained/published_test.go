package contained

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// published is a server of npm or PyPI.
type published struct {
	name    string
	command string // with its arguments; FILES is a mounted directory
	env     string // in YAML
	sandbox string // in YAML; "" means true

	// A call that needs no account, and a part of its answer. If tool is "", remark is the reason.
	tool, arguments, want, remark string

	// problem is a part of the error if the server cannot run in a sandbox; reason explains it.
	problem, reason string
}

// pypi is the directory with the lock file of the server that continuous integration builds an image for.
const pypi = "testdata/published"

// servers are the servers that docs/contained-servers.md lists, in its order.
var servers = []published{
	{name: "everything", command: "npx -y @modelcontextprotocol/server-everything",
		tool: "echo", arguments: `{"message": "hi"}`, want: "Echo: hi"},
	{name: "filesystem", command: "npx -y @modelcontextprotocol/server-filesystem FILES", sandbox: "{mounts: [FILES]}",
		tool: "read_text_file", arguments: `{"path": "FILES/note"}`, want: "a note"},
	{name: "memory", command: "npx -y @modelcontextprotocol/server-memory",
		tool: "read_graph", arguments: `{}`, want: "entities"},
	{name: "sequential", command: "npx -y @modelcontextprotocol/server-sequential-thinking",
		tool: "sequentialthinking", want: "thoughtNumber", arguments: `{"thought": "a", "nextThoughtNeeded": false,
			"thoughtNumber": 1, "totalThoughts": 1}`},
	{name: "commander", command: "npx -y @wonderwhy-er/desktop-commander",
		tool: "list_directory", arguments: `{"path": "/usr"}`, want: "[DIR] lib"},
	{name: "time", command: "uvx mcp-server-time",
		tool: "get_current_time", arguments: `{"timezone": "UTC"}`, want: "datetime"},
	{name: "calculator", command: "uvx mcp-server-calculator",
		tool: "calculate", arguments: `{"expression": "6*7"}`, want: "42"},
	{name: "fetch", command: "uvx mcp-server-fetch --ignore-robots-txt", sandbox: `{network: ["api.example.com:80"]}`,
		tool: "fetch", arguments: `{"url": "http://api.example.com/"}`, want: "hello api.example.com"},
	{name: "excel", command: "uvx excel-mcp-server stdio",
		tool: "create_workbook", arguments: `{"path": "/tmp/book.xlsx"}`, want: "/tmp/book.xlsx"},
	{name: "markitdown", command: "uvx markitdown-mcp", sandbox: "{mounts: [FILES], memory: 1GiB}",
		tool: "convert_to_markdown", arguments: `{"uri": "file://FILES/note"}`, want: "a note"},
	{name: "sqlite", command: "uvx --with mcp<2 mcp-server-sqlite --db-path /tmp/test.db",
		tool: "read_query", arguments: `{"query": "SELECT 6*7 AS answer"}`, want: "42"},
	{name: "duckdb", command: "uvx --with mcp<2 mcp-server-duckdb --db-path /tmp/x.db",
		tool: "query", arguments: `{"query": "SELECT 6*7 AS answer"}`, want: "42"},
	{name: "motherduck", command: "uvx mcp-server-motherduck --db-path :memory: --read-write",
		sandbox: "{memory: 1GiB}",
		tool:    "execute_query", arguments: `{"sql": "SELECT 6*7 AS answer"}`, want: "42"},
	{name: "arxiv", command: "uvx arxiv-mcp-server", tool: "list_papers", arguments: `{}`, want: "papers"},
	{name: "map", command: "npx -y @modelcontextprotocol/server-map --stdio", tool: "show-map", want: "Displaying",
		arguments: `{"west": 1, "south": 1, "east": 2, "north": 2}`},
	{name: "chart", command: "npx -y @antv/mcp-server-chart", remark: "needs antv-studio.alipay.com"},
	{name: "context7", command: "npx -y @upstash/context7-mcp", remark: "needs context7.com"},
	{name: "ddg", command: "uvx duckduckgo-mcp-server", remark: "needs html.duckduckgo.com"},
	{name: "wikipedia", command: "uvx wikipedia-mcp", remark: "needs en.wikipedia.org"},
	{name: "kubectl", command: "npx -y mcp-server-kubernetes", remark: "needs a cluster"},
	{name: "kubernetes", command: "npx -y kubernetes-mcp-server --kubeconfig FILES/kubeconfig",
		sandbox: "{mounts: [FILES]}", remark: "needs a cluster"},
	{name: "mongodb", command: "npx -y mongodb-mcp-server", remark: "needs a database"},
	{name: "slack", command: "npx -y @modelcontextprotocol/server-slack",
		env: "{SLACK_BOT_TOKEN: none, SLACK_TEAM_ID: T0}", remark: "needs an account"},
	{name: "brave", command: "npx -y @brave/brave-search-mcp-server", env: "{BRAVE_API_KEY: none}",
		remark: "needs an account"},
	{name: "tavily", command: "npx -y tavily-mcp", env: "{TAVILY_API_KEY: none}", remark: "needs an account"},
	{name: "figma", command: "npx -y figma-developer-mcp --stdio", env: "{FIGMA_API_KEY: none}",
		remark: "needs an account"},
	{name: "firecrawl", command: "npx -y firecrawl-mcp", env: "{FIRECRAWL_API_KEY: none}", remark: "needs an account"},
	{name: "notion", command: "npx -y @notionhq/notion-mcp-server", env: "{NOTION_TOKEN: none}",
		remark: "needs an account"},
	{name: "pinecone", command: "npx -y @pinecone-database/mcp", env: "{PINECONE_API_KEY: none}",
		remark: "needs an account"},
	{name: "grafana", command: "uvx mcp-grafana", remark: "needs a Grafana"},
	{name: "devtools", command: "npx -y chrome-devtools-mcp", sandbox: "{memory: 1GiB}",
		remark: "needs a browser, which no image has"},
	{name: "playwright", command: "npx -y @playwright/mcp", sandbox: "{memory: 1GiB}",
		remark: "needs a browser, which no image has"},
	{name: "azure", command: "npx -y @azure/mcp server start", sandbox: "{memory: 1GiB}",
		env: "{DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1'}", problem: "No usable version of libssl",
		reason: "its .NET program needs OpenSSL, which the image for Node does not have"},
	{name: "git", command: "uvx mcp-server-git", problem: "Bad git executable",
		reason: "it starts the program `git`, which no image has"},
	{name: "dbhub", command: "npx -y @bytebase/dbhub --transport stdio --dsn sqlite:///:memory:",
		problem: "Could not locate the bindings file",
		reason:  "its package `better-sqlite3` downloads native code when it is installed"},
}

// installed are servers of test/servers, by name, with the paths of their programs.
var installed = map[string]string{
	"everything": "server-everything/dist/index.js", "filesystem": "server-filesystem/dist/index.js",
	"memory": "server-memory/dist/index.js",
}

// Issue 30: published servers run in sandboxes, list their tools and answer. Those of test/servers are mounted, with
// their packages; one of PyPI has an image, made from a lock file.
func TestPublishedServers(t *testing.T) {
	testenv.Sandbox(t)
	packages := directory(t, 0)
	if err := os.CopyFS(packages, os.DirFS("../servers")); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		script, found := installed[s.name]
		if !found && s.name != "time" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			locks := t.TempDir()
			if found {
				_, arguments, _ := strings.Cut(strings.TrimPrefix(s.command, "npx -y "), " ")
				s.command = fmt.Sprintf("node %s/node_modules/@modelcontextprotocol/%s %s", packages, script, arguments)
				s.sandbox = fmt.Sprintf("{mounts: [%s, FILES]}", packages)
			} else if err := os.CopyFS(locks, os.DirFS(pypi)); err != nil {
				t.Fatal(err)
			}
			s.try(t, locks)
		})
	}
}

// tried is the environment variable with the directory for the lock files of TestAllPublishedServers.
const tried = "AIRLOCK_TEST_SERVERS"

// Issue 30: the table in docs/contained-servers.md is what really happens (`make contained-servers`).
func TestAllPublishedServers(t *testing.T) {
	locks := os.Getenv(tried)
	if locks == "" {
		t.Skip("downloads some 30 servers: run `make contained-servers`")
	}
	var table strings.Builder
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			fmt.Fprintln(&table, s.row(s.try(t, locks)))
		})
	}
	t.Logf("docs/contained-servers.md:\n%s", table.String())
	s, err := os.ReadFile(documented)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if !strings.Contains(string(s), line) {
			t.Errorf("%s has another row than %s", documented, line)
		}
	}
}

const documented = "../../docs/contained-servers.md"

// Issue 30: each server that is tried is in the documentation, and no other.
func TestPublishedServersAreDocumented(t *testing.T) {
	text, err := os.ReadFile(documented)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Servers that were tried\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if rows := strings.Count(section, "\n| "); !found || rows != len(servers)+1 {
		t.Errorf("got %d rows, want one for each of %d servers and their header", rows, len(servers))
	}
	for _, s := range servers {
		row := s.row(-1)
		begin, end, _ := strings.Cut(row, " -1 ")
		if !strings.Contains(section, begin) || !strings.Contains(section, end) {
			t.Errorf("there is no row like %s", row)
		}
	}
}

// kubeconfig names a cluster that does not exist.
const kubeconfig = `{apiVersion: v1, kind: Config, current-context: none,
contexts: [{name: none, context: {cluster: none, user: none}}], users: [{name: none, user: {}}],
clusters: [{name: none, cluster: {server: "https://127.0.0.1:9"}}]}`

// row is the row of the table for a server that lists tools, or cannot.
func (s published) row(tools int) string {
	launcher, rest, _ := strings.Cut(strings.Replace(s.command, "npx -y", "npx", 1), " ")
	pkg, _, _ := strings.Cut(strings.TrimPrefix(rest, "--with mcp<2 "), " ")
	from := map[string]string{"npx": "npm", "uvx": "PyPI"}[launcher]
	call := cmp.Or(s.remark, fmt.Sprintf("`%s` answers", s.tool))
	if s.reason != "" {
		return fmt.Sprintf("| %s | `%s` (%s) | none | %s |", s.name, pkg, from, s.reason)
	}
	return fmt.Sprintf("| %s | `%s` (%s) | %d | %s |", s.name, pkg, from, tools, call)
}

// try starts a server in a sandbox, lists its tools and calls one. It returns the number of tools.
func (s published) try(t *testing.T, locks string) int {
	t.Helper()
	env := testenv.OwnHome(t)
	files := directory(t, owner)
	write(t, filepath.Join(files, "note"), "a note")
	write(t, filepath.Join(files, "kubeconfig"), kubeconfig)
	file := s.configure(t, locks, files)
	var said bytes.Buffer
	build := []string{"images", "build", s.name, "--config", file}
	if code := cli.Main(t.Context(), build, nil, &said, &said); code != 0 {
		t.Fatalf("building the image for %s in %s: %s", s.name, env.Home, &said)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello "+r.Host)
	}))
	defer site.Close()
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := system.Open(t.Context(), c, system.Options{Version: "test", Serving: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, site.Listener.Addr().String())
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	l := &lab{t, opened, c}
	var found struct {
		Tools   int
		Problem string
	}
	listed := l.run("python", fmt.Sprintf(`
from client.catalog import search_tools
found = await search_tools(server_id=%q, detail="name", limit=500)
result = {"tools": len(found), "problem": str(found.missing)}
`, s.name), "")
	if err := json.Unmarshal([]byte(listed), &found); err != nil {
		t.Fatalf("got %q: %v", listed, err)
	}
	if s.problem != "" {
		if found.Tools > 0 || !strings.Contains(found.Problem, s.problem) {
			t.Errorf("got %d tools and the problem %q, want %q", found.Tools, found.Problem, s.problem)
		}
		return found.Tools
	}
	if found.Tools == 0 {
		t.Fatalf("there are no tools: %s", found.Problem)
	}
	if state, ok := opened.ServerState(user(), s.name); !ok || state.Contained == nil || state.Contained.Starts == 0 {
		t.Errorf("got the state %+v, want that of a sandbox", state)
	}
	if s.tool != "" {
		got := l.callTool(s.name, s.tool, json.RawMessage(strings.ReplaceAll(s.arguments, "FILES", files)))
		if !strings.Contains(got, s.want) {
			t.Errorf("%s: got %q, want %q", s.tool, got, s.want)
		}
	}
	return found.Tools
}

// configure writes the configuration of a server to the directory with its lock file, and returns its path.
func (s published) configure(t *testing.T, dir, files string) string {
	t.Helper()
	file := filepath.Join(dir, s.name+".yaml")
	words := strings.Fields(strings.ReplaceAll(s.command, "FILES", files))
	arguments, err := json.Marshal(words[1:])
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, fmt.Sprintf(`
mcpServers:
  %[1]s: {command: %[2]s, args: %[3]s, env: %[4]s, startTimeout: 2m}
servers:
  %[1]s: {sandbox: %[5]s, allow: ["*"]}
policies: [published.cedar]
`, s.name, words[0], arguments, cmp.Or(s.env, "{}"),
		strings.ReplaceAll(cmp.Or(s.sandbox, "true"), "FILES", files)))
	write(t, filepath.Join(dir, "published.cedar"), everything+
		`permit (principal, action == Action::"connect", resource);`)
	return file
}
