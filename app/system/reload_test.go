package system

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

func TestChangedPoliciesComeIntoForceAllOrNone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.cedar")
	const permit, forbid = `permit (principal, action, resource);`, `forbid (principal, action, resource);`
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, permit)
	tools, _ := catalog.ParseTools("demo", []json.RawMessage{json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`)})
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "demo", Tools: tools}})
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Policies: []string{file}, Servers: []config.Server{{ID: "demo"}}}
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := &System{config: c, opts: Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, machine: machine{log: log}}
	if err := s.openBroker(echo{}, redact.New()); err != nil {
		t.Fatal(err)
	}
	outcome := func() string {
		calls, err := s.broker.Open(broker.Run{ID: "run_1", Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_1"}}, snapshot, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer calls.Close()
		answer := calls.Call(t.Context(), broker.Call{ServerID: "demo", Name: "echo", Arguments: json.RawMessage(`{"a":1}`)})
		if answer.Error != nil {
			return answer.Error.Type
		}
		return "called"
	}
	ticks := make(chan time.Time)
	watching, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watchPolicies(watching, ticks)
	}()
	for _, step := range []struct{ name, rules, want string }{
		{"as it began", permit, "called"},
		{"a rule that forbids", forbid, "PolicyDenied"},
		{"a mistake changes nothing", "permit (", "PolicyDenied"},
		{"mended", permit, "called"},
	} {
		write(file, step.rules)
		ticks <- time.Time{}
		ticks <- time.Time{} // taken only when the first has been seen to
		if got := outcome(); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
	stop()
	<-done
}

// echo answers each call with its arguments.
type echo struct{}

func (echo) Call(_ context.Context, _, _ string, arguments json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[],"structuredContent":` + string(arguments) + `}`), nil
}
