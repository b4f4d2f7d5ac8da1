package daemon

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// joined is a host that is connected through the socket.
func (s *served) joined(profile string) *mcp.ClientSession {
	s.t.Helper()
	conn, err := Join(Host{Config: s.daemon.opts.Config, Version: "test", Profile: profile})
	if err != nil {
		s.t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(s.t.Context(), &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// Hosts that join share the daemon's pool, and do not see each other's runs.
func TestHostsJoin(t *testing.T) {
	s := serve(t, "mcpServers: {files: {command: cat}}\nprofiles: {small: {servers: [files]}}\n")
	first, second := s.joined(""), s.joined("small")
	answer, text := s.run(first, map[string]any{"language": "python", "code": "result = 6 * 7"})
	if answer["ok"] != true {
		t.Fatalf("got %v, %s", answer, text)
	}
	res, err := second.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_run",
		Arguments: map[string]any{"run_id": answer["run_id"]}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := res.StructuredContent.(map[string]any); got["state"] != "unknown" {
		t.Errorf("another host sees %v, want that there is no such run", got)
	}
	status, err := Ask()
	if err != nil || status.Hosts != 2 || status.PID != os.Getpid() || status.Version != "test" {
		t.Errorf("got %+v, %v, want two hosts", status, err)
	}
}

func TestWhoDoesNotFitIsRefused(t *testing.T) {
	s := serve(t, "")
	c := s.daemon.opts.Config
	other := *c
	other.Limits.Calls.Run++
	token := secret.New("qwed_agent_none")
	for name, joins := range map[string]func() (*join.Conn, error){
		"another version":       func() (*join.Conn, error) { return Join(Host{Config: c, Version: "other"}) },
		"another configuration": func() (*join.Conn, error) { return Join(Host{Config: &other, Version: "test"}) },
		"an unknown profile": func() (*join.Conn,
			error) {
			return Join(Host{Config: c, Version: "test", Profile: "none"})
		},
		"a token that there is not": func() (*join.Conn,
			error) {
			return Join(Host{Config: c, Version: "test", Agent: &token})
		},
		"an unknown purpose": func() (*join.Conn, error) { return join.Dial(join.Hello{Purpose: "x"}) },
	} {
		var refused *join.RefusedError
		if _, err := joins(); !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	var refused *join.RefusedError
	if _, err := Join(Host{Config: &config.Config{File: "/another/file"}, Version: "test"}); !errors.As(err, &refused) {
		t.Errorf("another file: got %v, want a refusal", err)
	}
	path, err := join.Path()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v, want mode 0600", info.Mode(), err)
	}
	for name, line := range map[string]string{"nonsense": "hello\n",
		"a long line": strings.Repeat("x", join.MaxHello+1) + "\n", "nothing": ""} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(line))
		conn.(*net.UnixConn).CloseWrite()
		answer := make([]byte, 1000)
		n, _ := conn.Read(answer)
		conn.Close()
		if strings.Contains(string(answer[:n]), "status") {
			t.Errorf("%s: got %s, want a refusal or the end", name, answer[:n])
		}
	}
	c.Serve.Listen = strings.TrimPrefix(s.url, "http://")
	if _, err := Listen(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "serves this state directory already") {
		t.Errorf("a second daemon at its address: got %v", err)
	}
	if _, err := lockState(); err == nil || !strings.Contains(err.Error(), "serves this state directory already") {
		t.Errorf("a second daemon: got %v, want a refusal", err)
	}
}

// A run of a joined host that is in progress at shutdown is answered.
func TestAJoinedHostIsAnsweredAtTheEnd(t *testing.T) {
	s := serve(t, "")
	session := s.joined("")
	answered := make(chan string, 1)
	go func() {
		answer, text := s.run(session, map[string]any{"language": "python",
			"code": "import time\ntime.sleep(1)\nresult = 'done'"})
		if answer["data"] == "done" {
			text = ""
		}
		answered <- text
	}()
	for s.daemon.opts.System.Runs().Going() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.daemon.askToStop()
	if text := <-answered; text != "" {
		t.Errorf("got %s, want the result", text)
	}
}

// A person lists and withdraws the approvals that cover further calls (issue 31).
func TestGrantsAreListedAndWithdrawn(t *testing.T) {
	desk := serve(t, "mcpServers: {files: {command: cat}}\n").daemon.opts.System.Approvals()
	verdict := make(chan approval.Verdict, 1)
	go func() {
		v, err := desk.Ask(t.Context(), approval.Question{ID: "apr_1", Asked: time.Now(),
			Expires: time.Now().Add(time.Minute), Asking: approval.Asking{Principal: "ann", SessionID: "ses_1"},
			Subject: approval.Subject{ServerID: "files", ToolName: "write_file"}})
		if err != nil {
			t.Error(err)
		}
		verdict <- v
	}()
	testenv.Await(t, "a question", func() bool { return len(desk.Posted()) > 0 })
	answer := approval.Response{ID: "apr_1", Digest: desk.Posted()[0].Digest, Approve: true, By: "ann, console",
		For: approval.Extent{Reach: approval.ThisSession}, Person: approval.Person{Name: "ann", Owner: true}}
	if err := desk.Answer(answer); err != nil {
		t.Fatal(err)
	}
	<-verdict
	grants, err := Grants()
	if err != nil || len(grants) != 1 || grants[0].ToolName != "write_file" || grants[0].By != "ann, console" {
		t.Fatalf("got %+v, %v, want one grant", grants, err)
	}
	if err := WithdrawGrant(grants[0].ID); err != nil {
		t.Error(err)
	}
	if left, err := Grants(); err != nil || len(left) != 0 {
		t.Errorf("got %+v, %v, want no grant", left, err)
	}
	refused := (*join.RefusedError)(nil)
	if err := WithdrawGrant(grants[0].ID); !errors.As(err, &refused) || refused.Hint() != "airlock approvals grants" {
		t.Errorf("withdrawing it again: %v, want a refusal with a hint", err)
	}
}
