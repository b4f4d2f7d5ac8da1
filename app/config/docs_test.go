package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// shower is a value that can be written as in the file. Those below are shown in the docs only.
type shower interface{ show() string }

func (v dollars) show() string  { return v.to.String() }
func (v hidden) show() string   { return "" }
func (v address) show() string  { return *v.to }
func (v hostPort) show() string { return *v.to }
func (v word) show() string     { return *v.to }
func (v flag) show() string     { return strconv.FormatBool(*v.to) }
func (v hookURL) show() string  { return *v.to }
func (v clock) show() string    { return *v.to }
func (v zone) show() string     { return *v.to }
func (v free) show() string     { return *v.to }

// show returns the rate as it is written in the file, or "" for the zero value.
func (v rate) show() string {
	if *v.to == (Rate{}) {
		return ""
	}
	per := showDuration(v.to.Per)
	switch v.to.Per {
	case time.Second, time.Minute, time.Hour:
		per = per[1:]
	}
	return fmt.Sprintf("%d/%s", v.to.Calls, per)
}

// documented returns every key that a file may have, with the default it has
// when it is a single value.
func documented() map[string]string {
	d, c := &decoder{}, Default()
	var (
		s        = Server{StartTimeout: defaultStartTimeout, CallTimeout: defaultCallTimeout}
		settings Settings
		tool     Tool
		disabled bool
		out      = map[string]string{}
	)
	add := func(prefix string, fields []field) {
		for _, f := range fields {
			out[join(prefix, f.key)] = ""
			if f.val != nil {
				out[join(prefix, f.key)] = f.val.(shower).show()
			}
		}
	}
	add("", d.topFields(c, nil))
	add("sandbox", d.sandboxFields(&c.Sandbox))
	add("sandbox.containerd", d.containerdFields(&c.Sandbox.Containerd))
	add("limits", d.limitFields(&c.Limits))
	add("audit", d.auditFields(&c.Audit))
	add("secrets", d.secretsFields(&c.Secrets))
	add("replay", d.replayFields(&c.Replay))
	add("tools", d.toolsFields(c))
	add("search.embeddings", d.embeddingsFields(&c.Embeddings))
	add("agents", d.agentsFields(&c.Agents))
	add("registry", d.registryFields(&c.Registry))
	add("cluster", d.clusterFields(&c.Cluster))
	add("verify", d.verifyFields(&c.Verify))
	add("images", d.imagesFields(&c.Images))
	add("images.python", d.packagesFields("python", &c.Images.Python))
	add("images.node", d.packagesFields("node", &c.Images.Node))
	add("kernel", d.kernelFields(&c.Kernel))
	add("models.*", d.modelFields(&Model{Timeout: defaultModelTimeout}))
	add("kernel.actions.*", d.actionFields(&Action{}))
	add("serve", d.serveFields(&c.Serve))
	add("approvals", d.approvalFields(&c.Approvals))
	add("approvals.webhooks.*", d.webhookFields(&Webhook{}))
	add("approvals.quietHours", d.quietFields(&c.Approvals.QuietHours))
	add("approvals.escalation", d.escalationFields(&c.Approvals.Escalation))
	add("auth", d.authFields(&c.Auth))
	add("auth.scopes.*", d.scopeFields(&Scope{}))
	add("auth.roles.*", d.roleFields(&Role{}))
	add("auth.signIn", d.signInFields(&SignIn{}))
	add("auth.signIn.groups.*", d.scopeFields(&Scope{}))
	add("auth.signIn.everyone", d.scopeFields(&Scope{}))
	add("redaction", d.redactionFields(c))
	add("attachments", d.attachmentsFields(&c.Attachments))
	add("session", d.sessionFields(&c.Session))
	add("face", d.faceFields(&c.Face))
	add("mcpServers.*", d.serverFields(&s))
	add("mcpServers.*", d.hostServer(&disabled)[:2])
	add("servers.*", d.settingFields(&settings))
	add("servers.*.oauth", d.oauthFields(&OAuth{}))
	add("servers.*.oauth.provider", d.oauthProviderFields(&OAuthProvider{}))
	add("profiles.*", d.profileFields(&catalog.Profile{}, new(bool)))
	add("servers.*.tools.*", d.toolFields(&tool))
	for _, section := range []string{"sandbox", "sandbox.containerd", "limits", "audit", "secrets", "replay", "agents",
		"verify", "images", "images.python", "images.node", "kernel", "serve", "auth", "approvals",
		"approvals.webhooks", "approvals.quietHours", "approvals.escalation", "auth.scopes", "auth.roles",
		"auth.signIn", "auth.signIn.groups", "auth.signIn.everyone", "models",
		"kernel.actions", "tools", "search", "registry",
		"redaction", "attachments", "session", "face", "servers.*.tools",
		"servers.*.oauth", "servers.*.oauth.provider", "profiles"} {
		delete(out, section) // its keys are listed instead
	}
	return out
}

func TestDocsListEveryKeyWithItsDefault(t *testing.T) {
	page := docsPage(t)
	for key, value := range documented() {
		var row string
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "| `") && strings.Contains(line, "`"+key+"`") {
				row = line
			}
		}
		switch {
		case row == "" && !strings.Contains(page, "`"+key+"`"):
			t.Errorf("docs/configuration.md does not mention %q", key)
		case row == "" && value != "":
			t.Errorf("docs/configuration.md has no row for %q", key)
		case value != "" && !strings.Contains(row, fmt.Sprintf("| `%s` |", value)):
			t.Errorf("docs/configuration.md: got row %q, want the default `%s`", strings.TrimSpace(row), value)
		}
	}
}

func TestDocsListEveryIgnoredKey(t *testing.T) {
	page := docsPage(t)
	for _, k := range hostKeys {
		if !strings.Contains(page, "`"+k.key+"`") {
			t.Errorf("docs/configuration.md does not say that %q is ignored", k.key)
		}
	}
}

// The example on the page is a configuration that loads.
func TestDocsExampleLoads(t *testing.T) {
	_, rest, _ := strings.Cut(docsPage(t), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/configuration.md has no yaml example")
	}
	c := mustLoad(t, example, envOf(map[string]string{"CRM_TOKEN": "hunter2"}))
	if len(c.Servers) != 2 || c.Limits.Profile != "wide" {
		t.Errorf("got %d servers and profile %q, want 2 and wide", len(c.Servers), c.Limits.Profile)
	}
}

// The entries for hosts' files in hosts.md and the pages of hosts are JSON that starts Airlock. If Airlock reads
// such a file, it ignores the entry instead of starting itself again.
func TestDocsOfHostsStartAirlock(t *testing.T) {
	var blocks []string
	for _, name := range []string{"hosts.md", "hosts/claude-code.md", "hosts/cursor.md", "hosts/gemini-cli.md",
		"hosts/vs-code.md"} {
		found := strings.Split(readDocs(t, name), "```json\n")[1:]
		if len(found) != 1 {
			t.Fatalf("got %d JSON blocks in docs/%s, want 1", len(found), name)
		}
		blocks = append(blocks, found...)
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if !json.Valid([]byte(text)) {
			t.Errorf("not valid JSON: %s", text)
			continue
		}
		c, err := loadAs(t, "mcp.json", text, envOf(map[string]string{"HOME": "/home/ann", "CRM_TOKEN": "x"}))
		if err != nil {
			t.Errorf("got %v for %s", err, text)
			continue
		}
		if findings := Lint(c); len(c.Servers) != 0 || len(findings) != 1 ||
			!strings.Contains(findings[0].Message, "is Airlock itself") {
			t.Errorf("got servers %v and findings %v, want only Airlock itself in %s", c.Servers, findings, text)
		}
	}
}

func docsPage(t *testing.T) string { return readDocs(t, "configuration.md") }

func readDocs(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
