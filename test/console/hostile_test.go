package console

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/test/browser"
)

// payloads call canary() if a page treats them as more than text.
var payloads = []string{
	`<script>canary(1)</script>`,
	`"><img src=x onerror=canary(2)>`,
	`' autofocus onfocus=canary(3) x='`,
	`</textarea></pre></title></style><svg onload=canary(4)>`,
	`<iframe srcdoc="<script>parent.canary(5)</script>"></iframe>`,
	`<a href="javascript:canary(6)" autofocus>x</a>`,
	`<div hx-get="/assets/console.js" hx-trigger="load" hx-on::after-request="canary(7)"></div>`,
	`<form action="https://evil.example/"><button>Sign out</button></form><base href="https://evil.example/">`,
	"\u2028{{.CSRF}}${canary(8)}`\u202e<!--<script>\x00",
	`<meta http-equiv="refresh" content="0;url=javascript:canary(9)"><object data="javascript:canary(9)"></object>`,
}

// injected lists what no page of the console has: elements and attributes that run something or
// lead elsewhere.
const injected = `[...document.querySelectorAll("*")].flatMap((e) => {
	const found = [];
	if (["IFRAME", "OBJECT", "EMBED", "BASE", "IMG", "STYLE"].includes(e.tagName)) found.push("element " + e.outerHTML);
	if (e.tagName === "SCRIPT" && !e.src.startsWith(location.origin + "/assets/")) found.push("script " + e.outerHTML);
	if (e.tagName === "META" && e.httpEquiv) found.push("element " + e.outerHTML);
	for (const a of e.attributes) {
		if (/^(on|hx-on|style$|srcdoc$)/.test(a.name)) found.push("attribute " + a.name + "=" + a.value);
		if (["href", "src", "action", "formaction", "hx-get", "hx-post"].includes(a.name) && new URL(a.value, location.href).origin !== location.origin) found.push("address " + a.value);
	}
	return found;
})`

// links are the addresses that a page leads to, and of what is saved none.
const links = `[...document.querySelectorAll("a[href]")].map((a) => a.href).filter((h) => ` +
	`h.startsWith(location.origin + "/") && !/\/(text|files|export|assets|log)\b|\bformat=/.test(h)).map((h) => ` +
	`h.slice(location.origin.length).replace(/#.*/, ""))`

// No page treats names and texts of servers, code and agents as more than text. The test
// opens every page that can be reached.
func TestNothingForeignRuns(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: payloads[0], Version: payloads[1]}, nil)
	for i, payload := range payloads {
		schema, err := json.Marshal(map[string]any{"type": "object", "title": payload,
			"properties": map[string]any{payload: map[string]any{"description": payload}}})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("t%d", i)
		if i%2 == 0 {
			name += payload
		}
		server.AddTool(&mcp.Tool{Name: name, Title: payload, Description: payload, InputSchema: json.RawMessage(schema),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, Title: payload}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: payload}}, IsError: i%4 == 1},
					nil
			})
	}
	server.AddTool(&mcp.Tool{Name: "write", Description: payloads[1],
		InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	a := startAirlock(t, trusted(startServer(t, server, "")))
	for _, payload := range payloads[:3] {
		a.prints(t, "agents", "create", payload, "--for", payload)
	}
	host := a.host(t, a.token(t, `<img src=x onerror=canary(10)>`, "run"))
	corpus, err := json.Marshal(payloads)
	if err != nil {
		t.Fatal(err)
	}
	code := fmt.Sprintf(`import json, sys
payloads = json.loads(%q)
# %s
for i, p in enumerate(payloads):
    print(p)
    print(p, file=sys.stderr)
    try:
        await client.call_tool("notes", "t%%d" %% i + (p if i %% 2 == 0 else ""), {p: p})
    except Exception as e:
        print(e)
`, corpus, strings.Join(payloads[:8], " "))
	runs(t, host, code+"result = payloads\n")
	if got := runs(t, host, code+"raise ValueError(payloads[1])\n"); got.OK {
		t.Error("the second program is to fail")
	}
	waiting, stop := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := host.CallTool(waiting, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
			"language": "python", "code": fmt.Sprintf(
				"import json\nfrom servers.notes import write\nawait write({'path': '/tmp/x', 'payloads': "+
					"json.loads(%q)})", corpus)}})
		asked <- err
	}()
	defer func() { stop(); <-asked }()
	a.until(t, "write", "approvals", "list")

	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "bob", "admin"))
	seen, queue := map[string]bool{}, []string{"/questions", "/runs", "/servers", "/tools", "/tools/changes",
		"/policies", "/audit", "/report", "/agents", "/health"}
	const most = 80
	for len(queue) > 0 && len(seen) < most {
		path := queue[0]
		queue = queue[1:]
		if seen[path] || strings.Contains(path, "sign-out") {
			continue
		}
		seen[path] = true
		if status := b.Goto(t, a.address+path); status >= 500 {
			t.Errorf("%s: got %d", path, status)
		}
		var found, next []string
		b.Evaluate(t, injected, &found)
		for _, one := range found {
			t.Errorf("%s has an %s", path, one)
		}
		b.NoProblems(t)
		b.Evaluate(t, links, &next)
		queue = append(queue, next...)
	}
	for _, page := range []string{"/tools/one", "/agents/", "/runs/run_", "/questions/"} {
		if !slices.ContainsFunc(keys(seen), func(path string) bool { return strings.HasPrefix(path, page) }) {
			t.Errorf("no page %s… was reached: %q", page, keys(seen))
		}
	}
	b.Goto(t, a.address+"/policies")
	b.Fill(t, "Server", payloads[1])
	b.Fill(t, "Tool", payloads[2])
	b.Fill(t, "Arguments", payloads[3])
	b.Click(t, "button", "Explain")
	b.Sees(t, "Policies")
	var found []string
	b.Evaluate(t, injected, &found)
	if len(found) > 0 {
		t.Errorf("what was typed comes back as %q", found)
	}
	b.NoProblems(t, "422 (Unprocessable Entity)")
}

func keys(m map[string]bool) []string {
	var list []string
	for key := range m {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}
