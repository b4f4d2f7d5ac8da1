// Package contained tests upstream servers in sandboxes, with a real Airlock, real sandboxes and servers that attack.
package contained

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// lab is an Airlock with the contained server "probe", whose tool runs any Python code.
type lab struct {
	t      *testing.T
	system *system.System
	config *config.Config
}

// everything permits calls; rules about connections are added to it.
const everything = `permit (principal, action in Action::"call", resource);
`

// open starts Airlock. sandbox is the value of servers.probe.sandbox, as YAML; connections are opened to target.
func open(t *testing.T, sandbox, rules, target string) *lab {
	t.Helper()
	return openOnTrial(t, sandbox, rules, target, nil)
}

// configure writes the configuration of a lab and builds the image of its server. It returns the configuration's path.
func configure(t *testing.T, sandbox, rules string) string {
	t.Helper()
	env := testenv.OwnHome(t)
	project := directory(t, 0)
	probe, err := os.ReadFile("testdata/probe.py")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(project, "probe.py"), string(probe))
	write(t, filepath.Join(project, "policy.cedar"), everything+rules)
	lock, err := filepath.Abs("../../examples/packages/airlock.lock") // `make images` builds its image
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(project, "airlock.yaml")
	write(t, file, `
mcpServers:
  probe: {command: python3, args: ["`+filepath.Join(project, "probe.py")+`"], env: {TOKEN_OF_PROBE: sesame-of-probe}}
  other: {command: "true", env: {TOKEN_OF_OTHER: sesame-of-other}}
servers:
  probe: {sandbox: `+sandbox+`, allow: ["*"]}
policies: [policy.cedar]
images: {python: {packages: [httpx, numpy, pandas, requests]}, lock: `+lock+`}
sandbox: {network: ["api.example.com:80", "forbidden.example.com:80", "unpermitted.example.com:80"]}
profiles:
  closed: {servers: ["*"], network: none}
serve: {listen: "127.0.0.1:0"}
`)
	if _, err := images.Build(t.Context(), images.BuildOptions{Home: env.Home, Name: "python",
		Extra: images.Extra{Server: true}}); err != nil {
		t.Fatal(err)
	}
	return file
}

// openOnTrial is open with a trial of the server.
func openOnTrial(t *testing.T, sandbox, rules, target string, trial *contained.Trial) *lab {
	t.Helper()
	c, err := config.Load(configure(t, sandbox, rules), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, c, trial, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, target)
	})
}

// openWith starts Airlock with a configuration, and with dial for connections to hosts.
func openWith(t *testing.T, c *config.Config, trial *contained.Trial,
	dial func(ctx context.Context, network, address string) (net.Conn, error)) *lab {
	t.Helper()
	opened, err := system.Open(t.Context(), c, system.Options{Version: "test", Serving: true, Trial: trial,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return &lab{t, opened, c}
}

// directory makes a directory for the user, which everybody can read if uid is 0, without a symbolic link in its path.
func directory(t *testing.T, uid int) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o755)
	if uid != 0 {
		mode = 0o700
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	if uid != 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Skipf("only root can make another user's directory: %v", err)
		}
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// user is the user who runs Airlock.
func user() caller.Caller {
	return caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Session: "ses_test"}
}

// call has the server run code and returns what it printed, or the error of the call.
func (l *lab) call(code string) string {
	l.t.Helper()
	arguments, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		l.t.Fatal(err)
	}
	return l.callTool("probe", "run", arguments)
}

// callTool calls a tool and returns the text of its result, or the error of the call.
func (l *lab) callTool(server, tool string, arguments json.RawMessage) string {
	l.t.Helper()
	req, err := orchestrator.CallRequest(orchestrator.ToolCall{ServerID: server, Name: tool, Arguments: arguments})
	if err != nil {
		l.t.Fatal(err)
	}
	req.Caller = user()
	outcome, err := l.system.Orchestrator().Run(l.t.Context(), req)
	if err != nil {
		l.t.Fatal(err)
	}
	if !outcome.Envelope.Result.OK {
		return "error: " + outcome.Envelope.Result.Error.Message
	}
	text := outcome.Envelope.Result.Data
	var result struct {
		Content []struct{ Text string }
	}
	if json.Unmarshal(text, &result) == nil && len(result.Content) == 1 {
		return strings.TrimSpace(result.Content[0].Text)
	}
	var plain string
	if json.Unmarshal(text, &plain) == nil {
		return strings.TrimSpace(plain)
	}
	return string(text)
}

// state is what is known about the server.
func (l *lab) state() contained.State {
	l.t.Helper()
	state, found := l.system.ServerState(user(), "probe")
	if !found || state.Contained == nil {
		l.t.Fatalf("got %+v, want the state of a contained server", state)
	}
	return state.Contained.State
}

// ended waits until each permitted connection has ended, and returns the records about connections. A server answers
// before the host has seen the end of its connections.
func (l *lab) ended() []audit.Record {
	l.t.Helper()
	for {
		records, open := l.records(), 0
		for _, r := range records {
			switch {
			case r.Kind == audit.KindIntent:
				open++
			case r.Kind == audit.KindOutcome && r.Decision == "allow":
				open--
			}
		}
		if open == 0 {
			return records
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-l.t.Context().Done():
			l.t.Fatalf("%d connections have not ended", open)
		}
	}
}

// records returns the records of the audit log about connections.
func (l *lab) records() []audit.Record {
	l.t.Helper()
	var records []audit.Record
	err := audit.NewFollower(l.system.Directories().Audit, "").Advance(func(r audit.Record) error {
		if r.ToolName == "connect" {
			records = append(records, r)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return records
}
