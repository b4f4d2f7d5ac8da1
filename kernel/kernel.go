// Package kernel implements the tools of agent-os-kernel: it judges code, asks models about claims
// and code, carries out the actions of agents under named policies, and shows the audit log.
// Transport and authentication are handled by the callers. See docs/kernel.md.
package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/models"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/verify"
)

// Agents looks up registered agents. *agents.Service implements it.
type Agents interface {
	// Find returns an agent, or agents.ErrUnknown. It is safe for concurrent use.
	Find(ctx context.Context, id string) (agents.Agent, error)
	// List returns at most n selected agents, ordered by ID, starting after the ID after. The zero
	// Selection selects all.
	List(ctx context.Context, only agents.Selection, after string, n int) ([]agents.Agent, error)
}

// Log is the audit log. It is an audit.Log.
type Log interface {
	Append(ctx context.Context, r audit.Record) error
	Hash(b []byte) string
}

// Verifier decides about claims and programs. It is the verify service.
type Verifier interface {
	// Verify is safe for concurrent use. An error means that there is no verdict.
	Verify(ctx context.Context, r verify.Request) (verify.Verdict, error)
}

// Dispatcher carries out actions in the same way as tool calls and runs of hosts: with their
// policies, approvals, credentials, limits and records. Its methods are safe for concurrent use.
// Cancelling ctx cancels the action.
type Dispatcher interface {
	// Call makes one tool call in the name of who. An error means that no call was made.
	Call(ctx context.Context, who caller.Caller, serverID, tool string, arguments json.RawMessage) (Output, error)
	// Run runs a program in a sandbox in the name of who.
	Run(ctx context.Context, who caller.Caller, language, code string) (Output, error)
	// Risk returns the risk of a tool visible to who. It returns false if there is no such tool.
	Risk(who caller.Caller, serverID, tool string) (policies.Risk, bool)
}

// Output is the result of an action.
type Output struct {
	RunID string
	Data  json.RawMessage // set if it succeeded
	// Failure is nil if it succeeded.
	Failure *Failure
}

// Failure is the reason why an action has no result, in the form seen by the code of a run.
type Failure struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Action is the tool that carries out an action.
type Action struct {
	Server, Tool string
	SQL          string // the parameter that contains SQL; may be empty
}

// Options of a service. Admission, Agents, Log, Trust, Files, Models, Policies and Dispatcher are required.
type Options struct {
	Admission      *admission.Service
	Agents         Agents
	Log            Log
	AuditDirectory string
	Trust          *iatp.Service
	Files          *vfs.Store
	Models         *models.Models
	Policies       *policies.Named
	PolicyFiles    []policies.File // the operator's files, which are also in Policies, with unique names
	Actions        map[string]Action
	Dispatcher     Dispatcher
	Verifier       Verifier         // nil: requests to judge code are refused
	Redactor       *redact.Redactor // redacts requests to models; nil: a redactor without credentials
	Now            func() time.Time // nil means time.Now
}

// Service implements the tools. Its methods are safe for concurrent use.
type Service struct {
	opts  Options
	scans *quota.Limiter // of queries that read the log
}

// New returns a service.
func New(opts Options) (*Service, error) {
	if opts.Admission == nil || opts.Agents == nil || opts.Log == nil || opts.Trust == nil || opts.Files == nil ||
		opts.Models == nil ||
		opts.Policies == nil || opts.Dispatcher == nil {
		return nil, errors.New("the kernel lacks a part")
	}
	if opts.Redactor == nil {
		opts.Redactor = redact.New()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Service{opts, quota.New(quota.For(quota.Scans))}, nil
}

// A Refusal is the reason why a request is refused, in a sentence for the caller.
type Refusal struct{ Text string }

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Actor is the caller of a tool. The local user may do everything.
type Actor struct{ caller.Caller }

// AwaitTurn delays a call of an actor whose account has had too many calls refused, because each
// refusal has a record. It returns an error if ctx ends first.
func (s *Service) AwaitTurn(ctx context.Context, a Actor) error {
	return s.opts.Admission.AwaitTurn(ctx, a.Caller)
}

// mayReadLog reports whether an actor may read all of the log.
func (a Actor) mayReadLog() bool {
	return a.Kind == caller.Local || a.Kind == caller.User &&
		a.May(caller.Hosts, caller.See, caller.Object{Kind: caller.Log})
}

// mayAct reports whether an actor may act as an agent and see its data: the agent itself, the
// caller who registered it, an administrator, or the local user.
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

// agent returns an agent that an actor may act as. For other actors it does not exist.
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

// actAs is like agent, for a tool that acts: a refused attempt is recorded.
func (s *Service) actAs(ctx context.Context, a Actor, id, tool string) (agents.Agent, error) {
	agent, err := s.agent(ctx, a, id)
	if errors.As(err, new(*Refusal)) {
		err = errors.Join(err,
			s.record(ctx, a, event{tool: tool, decision: denied,
				detail: fmt.Sprintf("as agent %q, which it may not act as", short(id))}))
	}
	return agent, err
}

// admit checks that an actor that is an agent may use a tool, by its state, permissions, budget and
// rate. A refusal is recorded.
func (s *Service) admit(ctx context.Context, a Actor, tool string) error {
	return s.use(ctx, a, admission.AgentOf(a.Caller), tool, tool)
}

// use is like admit for an agent that the actor acts as. The argument what is the tool, or its action, as named
// in permissions and prices.
func (s *Service) use(ctx context.Context, a Actor, agentID, tool, what string) error {
	_, err := s.decide(ctx, a, event{tool: tool, agent: agentID},
		admission.Act{Kind: admission.BuiltIn, Agent: agentID, Name: what})
	return err
}

// admitVerification is like admit for a request to an engine. The caller must end the grant.
func (s *Service) admitVerification(ctx context.Context, a Actor, tool, engine string) (*admission.Grant, error) {
	act := admission.Act{Kind: admission.Verification, Agent: admission.AgentOf(a.Caller), Name: tool, Engine: engine,
		Conversation: a.Session}
	return s.decide(ctx, a, event{tool: tool, agent: act.Agent}, act)
}

// decide has admission decide about an act. It records a refusal, which is a *Refusal; the caller
// records the act.
func (s *Service) decide(ctx context.Context, a Actor, e event, act admission.Act) (*admission.Grant, error) {
	act.Recorded = true
	r, grant, err := s.opts.Admission.Decide(ctx, act)
	if err != nil || r.Error == nil {
		return grant, err
	}
	e.decision, e.detail = denied, r.Refusal()
	return nil, errors.Join(&Refusal{r.Refusal()}, s.record(ctx, a, e))
}

// as returns the caller of an act that an actor makes as an agent: the agent, in the actor's
// session and conversation, so that rules about what was read apply.
func (a Actor) as(agent agents.Agent) caller.Caller {
	if a.Kind == caller.Agent {
		return a.Caller
	}
	who := agent.Caller()
	who.Session, who.Lineage, who.Profile = a.Session, a.Lineage, cmp.Or(a.Profile, agent.Profile)
	who.Credentials = append(slices.Clone(a.Credentials),
		caller.Credential{ID: agent.ID, Profile: agent.Profile, Expires: agent.Expires})
	return who
}

// Values in records.
const (
	allowed = "allow"
	denied  = "deny"
)

// event is one call of a tool, for the log.
type event struct {
	tool     string
	agent    string // the agent it is made for; empty for the caller itself
	decision string
	policies []string
	version  string
	detail   string
	hashed   []byte // recorded as a keyed hash
}

// record records a call durably. If it returns an error, the call must not be made.
func (s *Service) record(ctx context.Context, a Actor, e event) error {
	r := audit.Record{
		Kind:     audit.KindKernel,
		Identity: audit.IdentityOf(a.Caller),
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
		s.opts.Admission.CountRefusal(a.Account()) // AwaitTurn delays further calls
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

// short shortens a caller's text for quoting.
func short(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(slices.Concat(runes[:most], []rune("…")))
	}
	return text
}
