package gateway

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/verify"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// scripts is an executor that performs the action named in the second line of a program, which
// is a comment.
type scripts struct {
	begun chan string // each program's first line, when it begins

	mu           sync.Mutex
	last         orchestrator.Request
	active, most int // concurrent programs
}

func (s *scripts) Check(req orchestrator.Request) error { return req.Check() }
func (s *scripts) EndSession(string)                    {}

func (s *scripts) Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	first, does, _ := strings.Cut(string(req.Code), "\n# ")
	s.mu.Lock()
	s.last = req
	s.active++
	s.most = max(s.most, s.active)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
	}()
	req.OnStart(orchestrator.Live{})
	select {
	case s.begun <- first:
	case <-ctx.Done():
	}
	outcome := &orchestrator.Outcome{Envelope: orchestrator.Envelope{RunID: req.ID,
		Result: orchestrator.Result{OK: true}}}
	fail := func(code int, stopped orchestrator.Stop, message string) {
		outcome.End = orchestrator.End{ExitCode: code, Stopped: stopped}
		outcome.Envelope.Result = orchestrator.Result{Error: &orchestrator.Failure{Message: message}}
	}
	switch does {
	case "print":
		outcome.Stdout, outcome.Stderr = "out\n", "err\n"
	case "raise":
		outcome.Stdout, outcome.Stderr = "before\n",
			"Traceback (most recent call last):\nZeroDivisionError: division by zero\n"
		fail(1, "", "division by zero")
	case "exit":
		fail(3, "", "")
	case "sleep":
		outcome.Stdout = "so far\n"
		fail(-9, orchestrator.StoppedAtTimeout, "")
	case "flood":
		outcome.Stdout, outcome.StdoutCut = strings.Repeat("x", maxStream), 1
		fail(-9, orchestrator.StoppedAtOutput, "")
	case "eat":
		fail(-9, orchestrator.StoppedAtLimit, "the code needed more than its 536870912 bytes of memory")
	case "wait":
		<-ctx.Done()
		fail(-9, orchestrator.StoppedByCancel, "")
	}
	return outcome, nil
}

// log is an audit log that keeps only the newest record.
type log struct {
	mu      sync.Mutex
	records []gateway.Record
}

func (l *log) Record(_ context.Context, r gateway.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// cautious accepts every program that does not contain "danger".
type cautious struct{}

func (cautious) Verify(_ context.Context, r verify.Request) (verify.Verdict, error) {
	if strings.Contains(string(r.Arguments), "danger") {
		return verify.Verdict{Status: verify.Blocked, Engine: "code", Reason: "Dangerous pattern: danger"}, nil
	}
	return verify.Verdict{Status: verify.Verified, Engine: "code"}, nil
}

// lab is a face with a real gateway, a real registry and real jobs.
type lab struct {
	*Server
	scripts *scripts
	jobs    *runs.Jobs
	log     *log
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{scripts: &scripts{begun: make(chan string, 100)}, log: &log{}}
	records, err := audit.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	acts, err := admission.New(admission.Options{Log: records})
	if err != nil {
		t.Fatal(err)
	}
	decider, err := gateway.New(gateway.Options{Admission: acts, Verifier: cautious{}, Recorder: l.log, Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	registry := runs.New(l.scripts, nil)
	l.jobs = runs.NewJobs(registry, nil)
	l.Server, err = New(Parts{Decider: decider, Runs: registry, Jobs: l.jobs},
		Options{Version: "test", Principal: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		registry.Close()
		if err := l.jobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// versions are the revisions whose clients are served.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// serve serves one host on pipes; both ends close with the test.
func (l *lab) serve(t testing.TB) (io.ReadCloser, io.WriteCloser) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(context.WithoutCancel(t.Context()), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return fromServer, toServer
}

func (l *lab) connect(t testing.TB, version string) *mcp.ClientSession {
	t.Helper()
	r, w := l.serve(t)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: r, Writer: w},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting in %s: %v", version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func call(t testing.TB, session *mcp.ClientSession, tool string, arguments any) *mcp.CallToolResult {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	return res
}

func textOf(res *mcp.CallToolResult) string {
	return res.Content[0].(*mcp.TextContent).Text
}

var lostCaller = caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_1"}

// lostJobs are those of a server that was restarted.
type lostJobs struct{ Jobs }

func (lostJobs) Get(_ context.Context, _ caller.Caller, id string) (runs.JobStatus, bool) {
	return runs.JobStatus{ID: id, RunID: "run_1", State: runs.JobLost, Last: runs.JobRunning}, true
}
