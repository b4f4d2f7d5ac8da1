// Package kernel is what the tools of agent-os-kernel do: judge code, ask models
// about claims and code, carry out the actions of agents under named policies,
// and show what is in the audit log. How hosts reach it is not its concern; who
// asks was proven before. See docs/kernel.md.
package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/models"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/verify"
)

// Agents knows the registered agents: an *agents.Service.
type Agents interface {
	// Find returns an agent, or agents.ErrUnknown. It may be called concurrently.
	Find(ctx context.Context, id string) (agents.Agent, error)
	// List returns agents in order of their IDs, after the one named after, n at
	// most; owner selects those that it registered, empty all.
	List(ctx context.Context, only agents.Selection, after string, n int) ([]agents.Agent, error)
	// Use says whether an agent may use a tool of Airlock's own now, and debits it;
	// nil where it may.
	Use(ctx context.Context, agentID, tool string) (refused *agents.Error, err error)
	// DecideVerification is Use for a question to the engines.
	DecideVerification(ctx context.Context, agentID string, v agents.Verification) (agents.Ruling, error)
}

// Log is the audit log: an audit.Log.
type Log interface {
	Append(ctx context.Context, r audit.Record) error
	Hash(b []byte) string
}

// Verifier decides claims and programs: the verify service.
type Verifier interface {
	// Verify may be called concurrently. An error says that there is no verdict.
	Verify(ctx context.Context, r verify.Request) (verify.Verdict, error)
}

// Dispatcher carries actions out, on the paths that tool calls and runs of hosts
// take: with their policies, approvals, credentials, limits and records. Its
// methods may be called concurrently; cancelling ctx ends what they began.
type Dispatcher interface {
	// Call makes one tool call in the name of who. An error says that there was none.
	Call(ctx context.Context, who caller.Caller, serverID, tool string, arguments json.RawMessage) (Output, error)
	// Run runs a program in a sandbox in the name of who.
	Run(ctx context.Context, who caller.Caller, language, code string) (Output, error)
	// Risk returns the risk of a tool that who sees; false where there is no such tool.
	Risk(who caller.Caller, serverID, tool string) (policies.Risk, bool)
}

// Output is what an action came to.
type Output struct {
	RunID string
	Data  json.RawMessage // of what succeeded
	// Failure is nil where it succeeded.
	Failure *Failure
}

// Failure is why an action has no result, as the code of a run would see it.
type Failure struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Action is the tool that an action stands for.
type Action struct {
	Server, Tool string
	SQL          string // the parameter that holds SQL; empty: none does
}

// Options of a service. Agents, Log, Trust, Files, Models, Policies and Dispatcher
// are needed.
type Options struct {
	Agents         Agents
	Log            Log
	AuditDirectory string
	Trust          *iatp.Service
	Files          *vfs.Store
	Models         *models.Models
	Policies       *policies.Named
	PolicyFiles    []policies.File // the operator's own, which Policies has too, with unique names
	Actions        map[string]Action
	Dispatcher     Dispatcher
	Verifier       Verifier         // nil: no code is judged, and what asks for that is refused
	Redactor       *redact.Redactor // cleans what leaves for models; nil: one that holds no credential
	Now            func() time.Time // nil means time.Now
}

// Service does what the tools say. Its methods may be called concurrently.
type Service struct {
	opts  Options
	scans chan struct{} // holds a value for each query that reads the log
}

// New returns a service.
func New(opts Options) (*Service, error) {
	if opts.Agents == nil || opts.Log == nil || opts.Trust == nil || opts.Files == nil || opts.Models == nil || opts.Policies == nil || opts.Dispatcher == nil {
		return nil, errors.New("the kernel lacks a part")
	}
	if opts.Redactor == nil {
		opts.Redactor = redact.New()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Service{opts, make(chan struct{}, maxScans)}, nil
}

// A Refusal says why something is not done, in a sentence for who asked.
type Refusal struct{ Text string }

// Error returns the sentence.
func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Actor is who asks. The local user may do everything.
type Actor struct{ caller.Caller }

// mayReadLog reports whether an actor may read the log about all.
func (a Actor) mayReadLog() bool {
	return a.Kind == caller.Local || a.Kind == caller.User && a.May(caller.Hosts, caller.See, caller.Object{Kind: caller.Log})
}

// mayAct says whether an actor may act as an agent and see what is the agent's:
// the agent itself, who registered it, an administrator, the local user.
func (a Actor) mayAct(agent agents.Agent) bool {
	switch a.Kind {
	case caller.Local:
		return a.Profile == "" || agent.Profile == "" || a.Profile == agent.Profile
	case caller.Agent:
		return a.Principal == agent.ID
	case caller.User:
		return a.May(caller.People, caller.Change, agent.Object())
	}
	return false
}

// agent returns an agent that an actor may act as. To others it does not exist.
func (s *Service) agent(ctx context.Context, a Actor, id string) (agents.Agent, error) {
	found, err := s.opts.Agents.Find(ctx, id)
	if err != nil && !errors.Is(err, agents.ErrUnknown) {
		return found, err
	}
	if err != nil || !a.mayAct(found) {
		return agents.Agent{}, refuse("Agent %q is not registered: airlock agents create registers one", short(id))
	}
	return found, nil
}

// actAs is agent for a tool that acts: who may not is in the log.
func (s *Service) actAs(ctx context.Context, a Actor, id, tool string) (agents.Agent, error) {
	agent, err := s.agent(ctx, a, id)
	var no *Refusal
	if errors.As(err, &no) {
		err = errors.Join(err, s.record(ctx, a, event{tool: tool, decision: denied, detail: fmt.Sprintf("as agent %q, which it may not act as", short(id))}))
	}
	return agent, err
}

// admit lets an actor that is an agent use a tool as far as its state, its
// permissions, its budget and its rate allow. What they do not is in the log.
func (s *Service) admit(ctx context.Context, a Actor, tool string) error {
	if a.Kind != caller.Agent {
		return nil
	}
	return s.use(ctx, a, a.Principal, tool, tool)
}

// use is admit for an agent that the actor acts as. what is the tool, or the action
// of it, as permissions and prices name it.
func (s *Service) use(ctx context.Context, a Actor, agentID, tool, what string) error {
	refused, err := s.opts.Agents.Use(ctx, agentID, what)
	if err != nil || refused == nil {
		return err
	}
	return s.notAdmitted(ctx, a, event{tool: tool, agent: agentID}, refused)
}

// admitVerification is admit for a question to an engine. The caller ends what it was
// debited, which is nil where the actor is no agent.
func (s *Service) admitVerification(ctx context.Context, a Actor, tool, engine string) (*agents.Grant, error) {
	if a.Kind != caller.Agent {
		return nil, nil
	}
	r, err := s.opts.Agents.DecideVerification(ctx, a.Principal, agents.Verification{Type: tool, Engine: engine, Conversation: a.Session, Recorded: true})
	if err != nil || r.Error == nil {
		return r.Grant, err
	}
	return nil, s.notAdmitted(ctx, a, event{tool: tool, agent: a.Principal}, r.Error)
}

// notAdmitted records that an agent may not use a tool, and returns why.
func (s *Service) notAdmitted(ctx context.Context, a Actor, e event, refused *agents.Error) error {
	e.decision, e.detail = denied, refused.Code
	return errors.Join(&Refusal{refused.Error()}, s.record(ctx, a, e))
}

// as returns the caller of what an agent does, when an actor has it done: the
// agent, in the actor's session.
func (a Actor) as(agent agents.Agent) caller.Caller {
	if a.Kind == caller.Agent {
		return a.Caller
	}
	return caller.Caller{
		Principal: agent.ID, Kind: caller.Agent, Session: a.Session, Profile: cmp.Or(a.Profile, agent.Profile), Scopes: agent.Rights(), Account: agent.Share(),
		Credentials: append(slices.Clone(a.Credentials), caller.Credential{ID: agent.ID, Profile: agent.Profile, Expires: agent.Expires}),
	}
}

// Words of records.
const (
	allowed = "allow"
	denied  = "deny"
)

// event is one call of a tool, for the log.
type event struct {
	tool     string
	agent    string // in whose name it is; empty: the caller's own
	decision string
	policies []string
	version  string
	detail   string
	hashed   []byte // recorded as a keyed hash
}

// record writes a call to the log, durably: what cannot be recorded is not done.
func (s *Service) record(ctx context.Context, a Actor, e event) error {
	r := audit.Record{
		Kind:     audit.KindKernel,
		Identity: audit.Identity{Principal: a.Principal, Issuer: a.Issuer, CallerKind: string(a.Kind), SessionID: a.Session, Profile: a.Profile},
		Act:      audit.Act{ToolName: e.tool},
		Ruling:   audit.Ruling{Decision: e.decision, Policies: e.policies, PolicyVersion: e.version},
		Detail:   e.detail,
	}
	if e.agent != "" && e.agent != a.Principal {
		r.Principal, r.Issuer, r.CallerKind = e.agent, "", string(caller.Agent)
		r.Detail = joined(e.detail, "asked for by "+a.Name())
	}
	if e.decision == denied {
		r.Outcome = audit.OutcomeRefused
	}
	if len(e.hashed) > 0 {
		r.ArgumentsHash = s.opts.Log.Hash(e.hashed)
	}
	return s.opts.Log.Append(ctx, r)
}

func joined(parts ...string) string {
	var text string
	for _, part := range parts {
		if part != "" && text != "" {
			text += "; "
		}
		text += part
	}
	return text
}

// short bounds what a caller wrote where it is quoted.
func short(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(slices.Concat(runes[:most], []rune("…")))
	}
	return text
}
