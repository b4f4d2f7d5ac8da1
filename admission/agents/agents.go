// Package agents decides what agents may do: who they are, how far they are
// trusted, what they may spend and how often they may repeat themselves. What an
// agent announces is decided in one durable transaction; people answer where
// the rules ask, through the approval desk; and the audit log has every attempt.
// See docs/agents.md.
package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Type is how far an agent is trusted, as its registration says it.
type Type string

// The types, with trust 0 to 3.
const (
	Untrusted  Type = "untrusted"
	Supervised Type = "supervised"
	Autonomous Type = "autonomous"
	Trusted    Type = "trusted"
)

var types = []Type{Untrusted, Supervised, Autonomous, Trusted}

// Trust is the type as a number: 0 for what is no type.
func (t Type) Trust() int { return max(0, slices.Index(types, t)) }

// Status is whether an agent may act.
type Status string

// The states of an agent.
const (
	Active    Status = "active"
	Suspended Status = "suspended" // until it is resumed
	Killed    Status = "killed"    // for good
)

// Permissions are what an agent may use. What is blocked stands above what is
// allowed.
type Permissions struct {
	// AllowedEngines are the engines that its actions may need; nil for all.
	AllowedEngines []string `json:"allowed_engines,omitzero"`
	// AllowedTools are tools beside the safe ones that it may use.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// BlockedTools are tools and action types that it may not use, whatever its trust.
	BlockedTools []string `json:"blocked_tools,omitempty"`
}

// Registration is what an agent is registered with.
type Registration struct {
	Name        string        `json:"name"`
	Type        Type          `json:"type"`
	PrincipalID string        `json:"principal_id"` // whom it acts for
	Permissions Permissions   `json:"permissions"`
	Budget      budget.Limits `json:"budget"`
	Inherited   Inherited     `json:"-"` // never from what a caller writes
}

// Agent is a registered agent.
type Agent struct {
	ID          string      `json:"agent_id"`
	Name        string      `json:"name"`
	Type        Type        `json:"type"`
	Trust       int         `json:"trust_level"`
	PrincipalID string      `json:"principal_id"`
	Owner       string      `json:"owner"` // who registered it
	Permissions Permissions `json:"permissions"`
	Status      Status      `json:"status"`
	Created     time.Time   `json:"created"`
	Rotated     time.Time   `json:"token_rotated"` // when its token was made
	Inherited

	// TokenMark names the agent's token: its value changes when the token is rotated.
	TokenMark string `json:"-"`
}

// Inherited is what an agent has from the caller that registered it. The agent can do no
// more than that caller, and for no longer.
type Inherited struct {
	Profile string    `json:"profile,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"` // of what it does with its own token; always within those of its creator
	Expires time.Time `json:"expires,omitzero"`
	// Credentials must all be in force for the agent to act. It has none if the operator
	// registered it at the command line.
	Credentials []caller.Credential `json:"-"`
}

// Share is the account whose share of the host the agent takes, with all agents of its owner.
func (a Agent) Share() string { return "agents of " + a.Owner }

// Rights are the scopes of the agent's own token.
func (a Agent) Rights() []string {
	if len(a.Credentials) == 0 { // the operator registered it
		return []string{caller.ScopeRun}
	}
	return slices.Clone(a.Scopes)
}

// Object is the agent as callers may reach it.
func (a Agent) Object() caller.Object {
	return caller.Object{Kind: caller.AgentKind, Owner: caller.Owner{Principal: a.Owner, Session: a.ID, Profile: a.Profile}}
}

// Account is the agent's name in the ledger.
func (a Agent) Account() string { return "agent:" + a.ID }

// Limits of names and lists in a registration.
const (
	maxName = 200 // bytes
	maxList = 1000
)

// Engines are those that permissions.allowed_engines may name.
var engines = []string{"code", "consensus", "fact", "image", "logic", "math", "sql", "stats"}

// Defaults of a budget that does not say otherwise.
const (
	defaultDayCost      = 100 * budget.USD
	defaultHourRequests = int64(1000)
)

// ParseRegistration reads a registration from JSON, strictly. The error is a
// sentence for who wrote it.
func ParseRegistration(raw []byte) (Registration, error) {
	var r Registration
	if err := strictjson.Unmarshal(raw, &r); err != nil {
		return r, err
	}
	return r, r.Check()
}

// Check returns what is wrong with a registration, in a sentence for who wrote it.
func (r *Registration) Check() error {
	if err := errors.Join(checkName("name", r.Name), checkName("principal_id", r.PrincipalID)); err != nil {
		return err
	}
	if !slices.Contains(types, r.Type) {
		return fmt.Errorf("type %q is none of supervised, autonomous, trusted and untrusted", r.Type)
	}
	for _, engine := range r.Permissions.AllowedEngines {
		if !slices.Contains(engines, engine) {
			return fmt.Errorf("permissions.allowed_engines: there is no engine %q%s", engine, nearest.Hint(engine, engines))
		}
	}
	for name, list := range map[string][]string{"allowed_tools": r.Permissions.AllowedTools, "blocked_tools": r.Permissions.BlockedTools} {
		if len(list) > maxList {
			return fmt.Errorf("permissions.%s has %d entries, and %d are allowed", name, len(list), maxList)
		}
		for _, tool := range list {
			if err := checkName("permissions."+name, tool); err != nil {
				return err
			}
		}
	}
	return r.Budget.Check()
}

// withDefaults fills in the budget.
func (r Registration) withDefaults() Registration {
	if r.Budget.DayCost == nil {
		cost := defaultDayCost
		r.Budget.DayCost = &cost
	}
	if r.Budget.HourRequests == nil {
		requests := defaultHourRequests
		r.Budget.HourRequests = &requests
	}
	return r
}

func checkName(field, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return fmt.Errorf("%s is missing or empty", field)
	case len(name) > maxName:
		return fmt.Errorf("%s is longer than %d bytes", field, maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isControl):
		return fmt.Errorf("%s has control characters", field)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }
