package rules

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/redact"
)

// reloading has rules with a broker, a log and files to change.
type reloading struct {
	*Rules
	broker   *broker.Broker
	t        *testing.T
	dir      string
	snapshot *catalog.Snapshot
	notices  chan upstreams.Notice
}

// newReloading reads rules whose configuration has a server with one tool and the given keys.
func newReloading(t *testing.T, keys, policy string) *reloading {
	t.Helper()
	t.Setenv("AIRLOCK_HOME", t.TempDir())
	r := &reloading{t: t, dir: t.TempDir(), notices: make(chan upstreams.Notice, 10)}
	r.write("rules.cedar", policy)
	r.configure(keys)
	tools, _ := catalog.ParseTools(
		"demo", []json.RawMessage{json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`)})
	var err error
	if r.snapshot, err = catalog.NewSnapshot([]catalog.Server{{ID: "demo", Tools: tools}}); err != nil {
		t.Fatal(err)
	}
	reread := func() (*config.Config, error) { return config.Load(filepath.Join(r.dir, "airlock.yaml"), os.LookupEnv) }
	c, err := reread()
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(filepath.Join(r.dir, "audit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	opts := Options{Reread: reread, Notify: func(n upstreams.Notice) { r.notices <- n }, Logger: logger, Log: log,
		State: &state.State{}}
	read, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Admission, err = admission.New(admission.Options{Rules: read.Rules, Log: log, Logger: logger}); err != nil {
		t.Fatal(err)
	}
	opts.Servers = upstreams.NewServers(upstreams.Fixed(c, r.snapshot, upstreams.Options{Logger: logger,
		Notify: opts.Notify, Redactors: upstreams.NewRedactors()}), nil, upstreams.ServersOptions{
		Config: func() *config.Config { return r.Config() }, Admission: opts.Admission, State: opts.State, Log: log})
	r.Rules = New(c, read, opts)
	if r.broker, err = broker.New(echo{}, log, opts.Admission, &broker.Options{Redactor: redact.New(),
		Logger: logger}); err != nil {
		t.Fatal(err)
	}
	return r
}

// write replaces a file atomically.
func (r *reloading) write(name, text string) {
	r.t.Helper()
	if err := store.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// configure writes the configuration with other keys.
func (r *reloading) configure(keys string) {
	r.write("airlock.yaml", "mcpServers: {demo: {command: demo}}\npolicies: [rules.cedar]\n"+keys+"\n")
}

// call calls the tool and returns "called" or the type of the error.
func (r *reloading) call() string {
	r.t.Helper()
	calls, err := r.broker.Open(broker.Run{ID: "run_1",
		Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_1"}}, r.snapshot, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer calls.Close()
	answer := calls.Call(r.t.Context(), broker.Call{ServerID: "demo", Name: "echo",
		Arguments: json.RawMessage(`{"a":1}`)})
	if answer.Error != nil {
		return answer.Error.Type
	}
	return "called"
}

// lastOperatorRecord returns the newest record about the operator.
func (r *reloading) lastOperatorRecord() audit.Record {
	r.t.Helper()
	var last audit.Record
	if err := audit.Tail(r.t.Context(), filepath.Join(r.dir, "audit"), 100, false, func(record audit.Record) error {
		if record.Kind == audit.KindOperator {
			last = record
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return last
}

// echo answers each call with its arguments.
type echo struct{}

func (echo) Call(_ context.Context, _, _ string, arguments json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[],"structuredContent":` + string(arguments) + `}`), nil
}

// permit is a policy that applies servers.*.deny.
const permit = `permit (principal, action, resource) unless { resource.denied };`

const forbid = `forbid (principal, action, resource);`

func TestReloadIsAllOrNothing(t *testing.T) {
	r := newReloading(t, "", permit)
	if got := r.call(); got != "called" {
		t.Fatalf("at first: got %s, want a call", got)
	}
	steps := []struct {
		name         string
		keys, policy string
		call         string // the result of a call
		notice, hint string // parts of the notice
		record       string // detail of the audit record
	}{
		{"nothing changed", "", permit, "called", "nothing has changed", "", ""},
		{"a rule that forbids", "", forbid, "PolicyDenied", "changed and in force: policies", "",
			"changed and in force: policies"},
		{"a policy with a mistake", "", "permit (", "PolicyDenied", "all rules stay as they were", "", "has a mistake"},
		{"mended", "", permit, "called", "changed and in force: policies", "", "changed and in force: policies"},
		{"a tool is denied", "servers: {demo: {deny: [echo]}}", permit, "PolicyDenied",
			"changed and in force: servers.demo", "", "changed and in force: servers.demo"},
		{"a mistake in the file", "servers: {demo: {denny: [echo]}}", permit, "PolicyDenied", "denny", "",
			"has a mistake"},
		{"a good and a bad change", "servers: {demo: {deny: []}}", "permit (", "PolicyDenied",
			"all rules stay as they were", "", "has a mistake"},
		{"allowed again", "servers: {demo: {allow: [echo]}}", permit, "called", "changed and in force: servers.demo",
			"", "servers.demo"},
		{"a rate, used up", "servers: {demo: {allow: [echo], rate: 1/h}}", permit, "called",
			"changed and in force: servers.demo", "", "servers.demo"},
		{"used up", "servers: {demo: {allow: [echo], rate: 1/h}}", permit, "RateLimit", "nothing has changed", "", ""},
		{"what needs a restart", "sandbox: {memory: 1GiB}\nservers: {demo: {deny: [echo]}}", permit, "RateLimit",
			"sandbox.memory cannot change while Airlock serves", "restart it",
			"needs a restart, and the rules stay as they were: sandbox.memory"},
		{"taken back", "servers: {demo: {allow: [echo], rate: 1/h}}", permit, "RateLimit", "again those in force", "",
			""},
		{"budgets and settings at once", "limits: {calls: 9}", permit, "called",
			"changed and in force: limits, servers.demo", "", "limits, servers.demo"},
	}
	for _, step := range steps {
		before := r.lastOperatorRecord().Seq
		r.configure(step.keys)
		r.write("rules.cedar", step.policy)
		r.Reload(t.Context())
		select {
		case notice := <-r.notices:
			if !strings.Contains(notice.Text, step.notice) || !strings.Contains(notice.Hint, step.hint) {
				t.Errorf("%s: got told %+v, want %q with the hint %q", step.name, notice, step.notice, step.hint)
			}
		default:
			t.Errorf("%s: the subscriber was not told", step.name)
		}
		record := r.lastOperatorRecord()
		if isNew := record.Seq != before; isNew != (step.record != "") ||
			!strings.Contains(record.Detail, step.record) {
			t.Errorf("%s: got record %q (new: %v), want %q", step.name, record.Detail, isNew, step.record)
		}
		if got := r.call(); got != step.call {
			t.Errorf("%s: got %s, want %s", step.name, got, step.call)
		}
	}
}

// Changed files are noticed, and a refused change is reported once.
func TestChangedFilesComeIntoForce(t *testing.T) {
	r := newReloading(t, "", permit)
	watching, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(watching)
	}()
	expect := func(what, call string) {
		t.Helper()
		if notice := <-r.notices; !strings.Contains(notice.Text, what) {
			t.Errorf("got told %q, want %q", notice.Text, what)
		}
		if got := r.call(); got != call {
			t.Errorf("after %q: got %s, want %s", what, got, call)
		}
	}
	r.write("rules.cedar", forbid)
	expect("changed and in force: policies", "PolicyDenied")
	r.write("rules.cedar", "permit (")
	expect("all rules stay as they were", "PolicyDenied")
	r.write("another", "of no interest") // read again, without a second notice
	r.write("rules.cedar", permit)
	expect("changed and in force: policies", "called")
	r.configure("servers: {demo: {deny: [echo]}}")
	expect("changed and in force: servers.demo", "PolicyDenied")
	if err := os.Mkdir(filepath.Join(r.dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.write("other/rules.cedar", permit)
	r.write("airlock.yaml", "mcpServers: {demo: {command: demo}}\npolicies: [other/rules.cedar]\n")
	expect("changed and in force: policies, servers.demo", "called")
	r.write("other/rules.cedar", forbid) // another directory is watched now
	expect("changed and in force: policies", "PolicyDenied")
	stop()
	<-done
	if len(r.notices) > 0 {
		t.Errorf("told too: %+v", <-r.notices)
	}
}

// If only the text of the configuration changes, clients find the new text in force, and no notice
// or record is made.
func TestAnotherTextThatSaysTheSame(t *testing.T) {
	r := newReloading(t, "", permit)
	read := func() *config.Config {
		t.Helper()
		c, err := r.opts.Reread()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read()
	raw, err := os.ReadFile(before.File)
	if err != nil {
		t.Fatal(err)
	}
	r.write("airlock.yaml", "# a comment\n\n"+string(raw))
	after := read()
	if after.Source() == before.Source() || r.Config().Source() != before.Source() {
		t.Fatal("the test compares nothing")
	}
	if told := r.reload(t.Context(), false); told || len(r.notices) > 0 {
		t.Error("something is told of it")
	}
	if got := r.Config(); got.Source() != after.Source() || config.Digest(got) != config.Digest(after) {
		t.Error("the former text is in force")
	}
}
