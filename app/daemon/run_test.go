package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/store"
)

// at implements RunHere for a client without a terminal.
type at struct {
	waits chan approval.Question

	mu      sync.Mutex
	notices []string
}

func newAt() *at { return &at{waits: make(chan approval.Question, 100)} }

func (*at) Ask(context.Context, approval.Question) (approval.Verdict, error) {
	return approval.Verdict{}, errors.New("no terminal")
}

func (a *at) Progress(string) {}

func (a *at) Notice(n upstreams.Notice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notices = append(a.notices, n.Text)
}

func (a *at) Waits(q approval.Question) { a.waits <- q }

// client connects to run one program.
func (s *served) client() *join.Conn {
	s.t.Helper()
	conn, err := JoinRun(Host{Config: s.daemon.opts.Config, Version: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestARunOverTheSocket(t *testing.T) {
	s := serve(t, "mcpServers: {gone: {command: /no/such/program}}\n")
	for name, test := range map[string]struct {
		request join.RunRequest
		want    string // in the envelope
		printed string
	}{
		"a result": {join.RunRequest{Language: "python", Code: []byte("print('hi')\nresult = 6 * 7")}, `"data":42`,
			"hi\n"},
		"node": {join.RunRequest{Language: "node", Code: []byte("console.log('hi')\nglobalThis.result = 6 * 7")},
			`"data":42`, "hi\n"},
		"a failure": {join.RunRequest{Language: "python", Code: []byte("raise KeyError(1)")}, `"type":"KeyError"`,
			""},
		"a timeout": {join.RunRequest{Language: "python", Code: []byte("while True: pass"), Timeout: 1e9},
			`"type":"Timeout"`, ""},
		"line ends": {join.RunRequest{Language: "python", Code: []byte(`result = "<\u2028&"`)}, `"<\u2028&"`, ""},
		"a long file": {join.RunRequest{Language: "python",
			Code: []byte("#" + strings.Repeat("x", 1<<20) + "\nresult = 1")}, `"data":1`, ""},
	} {
		a := newAt()
		outcome, err := Run(t.Context(), s.client(), test.request, a)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if line := string(outcome.Line); !strings.Contains(line, test.want) || strings.Count(line, "\n") != 1 ||
			!strings.HasPrefix(outcome.Printed, test.printed) {
			t.Errorf("%s: got %s and %q, want %s and %q", name, line, outcome.Printed, test.want, test.printed)
		}
		if len(a.notices) != 1 || !strings.Contains(a.notices[0], `"gone" is missing`) {
			t.Errorf("%s: the client is told %q, want that a server is missing", name, a.notices)
		}
	}
	if hosts := s.daemon.socket.joined.Load(); hosts != 0 {
		t.Errorf("%d hosts have joined, want none", hosts)
	}
}

func TestARefusedRun(t *testing.T) {
	s := serve(t, "")
	var refused *join.RunRefusal
	for name, test := range map[string]struct {
		request join.RunRequest
		kind    string
	}{
		"no code":    {join.RunRequest{Language: "python"}, errortype.InvalidRequest},
		"a language": {join.RunRequest{Language: "ruby", Code: []byte("1")}, errortype.InvalidRequest},
		"not UTF-8":  {join.RunRequest{Language: "python", Code: []byte("\xff")}, errortype.InvalidRequest},
		"a timeout":  {join.RunRequest{Language: "python", Code: []byte("1"), Timeout: -1}, errortype.InvalidRequest},
		"a long file": {join.RunRequest{Language: "python", Code: []byte(strings.Repeat("x", 2<<20+1))},
			errortype.InvalidRequest},
	} {
		if _, err := Run(t.Context(), s.client(), test.request, newAt()); !errors.As(err, &refused) ||
			refused.Kind != test.kind || !refused.Usage || refused.Hint() == "" {
			t.Errorf("%s: got %+v, %v, want a refusal as wrong usage with a hint", name, refused, err)
		}
	}
	if _, err := JoinRun(Host{Config: s.daemon.opts.Config, Version: "other"}); err == nil {
		t.Error("a client of another version may run a program")
	}
}

// A run ends when its client cancels it or disconnects.
func TestARunEndsWithItsClient(t *testing.T) {
	s := serve(t, "")
	s.untilReady()
	sleep := join.RunRequest{Language: "python", Code: []byte("import time\ntime.sleep(25)")}
	begun := func() {
		for s.daemon.opts.System.Runs().Going() == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { begun(); cancel() }()
	outcome, err := Run(ctx, s.client(), sleep, newAt())
	// If it did not have a sandbox yet, there is no run and no outcome.
	if err == nil && !strings.Contains(string(outcome.Line), `"ok":false`) {
		t.Errorf("a cancelled run: got %s", outcome.Line)
	}
	if errors.Is(err, join.ErrLost) {
		t.Errorf("a cancelled run: got %v", err)
	}
	s.untilIdle()
	conn := s.client()
	if err := (&joinedRun{conn: conn}).write(join.FromClient{Run: &sleep}); err != nil {
		t.Fatal(err)
	}
	begun()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s.untilIdle() // if the run continues, this waits until the test times out
}

// A line that is not a program ends the connection, and does not affect the daemon.
func TestNonsenseInPlaceOfAProgram(t *testing.T) {
	s := serve(t, "")
	for name, line := range map[string]string{
		"no JSON": "hello\n", "no program": "{}\n", "an answer first": `{"answer":{"id":"apr_1"}}` + "\n",
		"a line without end": strings.Repeat("x", join.MaxRunLine+1), "nothing": "",
	} {
		conn := s.client()
		if _, err := conn.Write([]byte(line)); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Logf("%s: %v", name, err) // it was cut off meanwhile
		}
		_ = conn.CloseWrite() // likewise
		if n, err := conn.Read(make([]byte, 100)); err == nil {
			t.Errorf("%s: %d bytes were answered, want the end", name, n)
		}
		conn.Close()
	}
	if outcome, err := Run(t.Context(), s.client(), join.RunRequest{Language: "python", Code: []byte("result = 1")},
		newAt()); err != nil || !strings.Contains(string(outcome.Line), `"ok":true`) {
		t.Errorf("afterwards: %v", err)
	}
}

// If the client has no terminal that may approve, a call that needs an approval waits for an
// answer from elsewhere, and its client is notified.
func TestACallOfARunWaitsElsewhere(t *testing.T) {
	s := serve(t, "mcpServers: {desk: {command: "+upstreamtest.Program(t)+"}}\n")
	a := newAt()
	got := make(chan string, 1)
	go func() {
		outcome, err := Run(t.Context(), s.client(), join.RunRequest{Language: "python", Terminal: true, Code: []byte(`
from client.mcp_client import call_tool
answer = await call_tool(server_id="desk", name="count", arguments={})
result = answer["error"]["type"]`)}, a)
		if err != nil {
			t.Error(err)
			got <- ""
			return
		}
		got <- string(outcome.Line)
	}()
	q := <-a.waits
	questions := store.Approvals(os.Getenv("AIRLOCK_HOME"))
	posted, err := approval.Find(questions, q.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := approval.Reply(questions, posted, approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	if line := <-got; !strings.Contains(line, "ApprovalDenied") {
		t.Errorf("got %s, want that a person denied it", line)
	}
}
