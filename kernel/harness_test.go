package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/models"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// world is a kernel with a real database, log and agent service. It records what is dispatched, and
// answers as set by the test.
type world struct {
	*kernel.Service
	agents *agents.Service
	acts   *admission.Service
	trust  *iatp.Service
	log    *audit.Log
	logDir string
	said   map[string]string // what each model answers

	mu         sync.Mutex
	asked      []string // bodies of requests to models
	dispatched []string
	output     kernel.Output
}

func (w *world) Call(_ context.Context, who caller.Caller, server, tool string,
	arguments json.RawMessage) (kernel.Output, error) {
	return w.note(fmt.Sprintf("%s%s %s/%s %s", who.Lineage, who.Kind, server, tool, arguments))
}

func (w *world) Run(_ context.Context, who caller.Caller, language, code string) (kernel.Output, error) {
	return w.note(fmt.Sprintf("%s%s %s %s", who.Lineage, who.Kind, language, code))
}

func (w *world) note(what string) (kernel.Output, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dispatched = append(w.dispatched, what)
	return w.output, nil
}

func (w *world) Risk(_ caller.Caller, _, tool string) (policies.Risk, bool) {
	risk, ok := map[string]policies.Risk{"query": policies.RiskUnknown, "look": policies.RiskLow,
		"wipe": policies.RiskCritical, "send": policies.RiskHigh}[tool]
	return risk, ok
}

// taken returns the dispatched actions since the last call.
func (w *world) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.dispatched
	w.dispatched = nil
	return taken
}

// options may change the kernel's options.
func newWorld(t *testing.T, options ...func(*kernel.Options)) *world {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	w := &world{said: map[string]string{}}
	db, err := databasetest.Open(ctx, filepath.Join(dir, "state.db"), agents.Schema, vfs.Schema+iatp.Schema,
		agents.SchemaInherited, agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.logDir = filepath.Join(dir, "audit")
	if w.log, err = audit.Open(w.logDir, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.log.Close() })
	w.agents = agents.New(agents.Options{Database: db, Log: w.log})
	if w.acts, err = admission.New(admission.Options{Log: w.log}); err != nil {
		t.Fatal(err)
	}
	end, err := w.acts.OpenAgents(admission.AgentOptions{Agents: w.agents, Database: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	if w.trust, err = iatp.New(iatp.Options{Database: db, Agents: w.agents, Log: w.log,
		Identity: agekey.Of(identity)}); err != nil {
		t.Fatal(err)
	}
	named, err := policies.LoadNamed()
	if err != nil {
		t.Fatal(err)
	}
	opts := kernel.Options{
		Admission: w.acts, Agents: w.agents, Log: w.log, AuditDirectory: filepath.Join(dir, "audit"), Trust: w.trust,
		Policies:   named,
		Dispatcher: w,
		Files:      vfs.New(db, agekey.Of(identity), vfs.Limits{Files: 10, FileBytes: 1 << 10, Bytes: 4 << 10}, nil),
		Models:     w.serveModels(t),
		Actions: map[string]kernel.Action{
			"database_query": {Server: "db", Tool: "query", SQL: "query"}, "look_up": {Server: "db", Tool: "look"},
			"wipe": {Server: "db", Tool: "wipe"}, "send_email": {Server: "mail", Tool: "send"},
		},
	}
	for _, change := range options {
		change(&opts)
	}
	if w.Service, err = kernel.New(opts); err != nil {
		t.Fatal(err)
	}
	return w
}

// serveModels starts a server with an API like OpenAI's, whose models answer with w.said. A model
// without an entry fails.
func (w *world) serveModels(t *testing.T) *models.Models {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var question struct {
			Model    string
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || len(question.Messages) != 2 {
			t.Errorf("%v, %+v", err, question)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, question.Messages[0].Content+"\n"+question.Messages[1].Content)
		text, says := w.said[question.Model]
		if !says {
			http.Error(out, "down", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(out).Encode(
			map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": text}}}})
	}))
	t.Cleanup(server.Close)
	var list []models.Model
	for _, name := range []string{"gpt-4", "claude-sonnet-4", "gemini-pro", "other"} {
		list = append(list, models.Model{Name: name, Model: name, URL: server.URL + "/v1", Key: secret.New("sk-test")})
	}
	known, err := models.New(list)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func (w *world) say(answers map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said, w.asked = answers, nil
}

// register creates an agent with an owner and returns its ID.
func (w *world) register(t *testing.T, owner string, kind agents.Type) string {
	t.Helper()
	a, _, err := w.agents.Register(t.Context(), agents.Registration{Name: "x", Type: kind, PrincipalID: owner}, owner)
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

// The actors of the tests.
var (
	local = kernel.Actor{Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_1"}}
	bob   = kernel.Actor{Caller: caller.Caller{Principal: "bob", Kind: caller.User, Session: "ses_2",
		Scopes: []string{caller.ScopeAgents}}}
)

func agentActor(id string) kernel.Actor {
	return kernel.Actor{Caller: caller.Caller{Principal: id, Kind: caller.Agent, Session: "ses_3"}}
}

// refusal returns the text of a *kernel.Refusal, and fails the test for any other error.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var no *kernel.Refusal
	if !errors.As(err, &no) {
		t.Errorf("got %v, want a refusal", err)
		return ""
	}
	return no.Text
}

// withRedactor lets the kernel hold a credential.
func withRedactor(credential string) func(*kernel.Options) {
	return func(o *kernel.Options) {
		o.Redactor = redact.New()
		o.Redactor.Hold(credential)
	}
}

func contains(list []string, item string) bool { return slices.Contains(list, item) }
