// Package agents registers agents: their trust, permissions, budget, token and status. Package
// admission decides what they may do. See docs/agents.md.
package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Type is the trust class of an agent, set at registration.
type Type string

// The types, with trust 0 to 3.
const (
	Untrusted  Type = "untrusted"
	Supervised Type = "supervised"
	Autonomous Type = "autonomous"
	Trusted    Type = "trusted"
)

var types = []Type{Untrusted, Supervised, Autonomous, Trusted}

// Types returns the types in order of their trust.
func Types() []Type { return slices.Clone(types) }

// Trust returns the type as a number. It returns 0 for an unknown type.
func (t Type) Trust() int { return max(0, slices.Index(types, t)) }

// Status describes whether an agent may act.
type Status string

// The states of an agent.
const (
	Active    Status = "active"
	Suspended Status = "suspended" // until it is resumed
	Killed    Status = "killed"    // permanently
)

// Permissions list what an agent may use. A block takes precedence over an allowance.
type Permissions struct {
	// AllowedEngines are the engines that its actions may need; nil allows all.
	AllowedEngines []string `json:"allowed_engines,omitzero"`
	// AllowedTools are tools that it may use in addition to the safe ones.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// BlockedTools are tools and action types that it may not use at any trust level.
	BlockedTools []string `json:"blocked_tools,omitempty"`
}

// Registration holds the settings with which an agent is registered.
type Registration struct {
	Name        string        `json:"name"`
	Type        Type          `json:"type"`
	PrincipalID string        `json:"principal_id"` // the person or service it acts for
	Permissions Permissions   `json:"permissions"`
	Budget      budget.Limits `json:"budget"`
	Inherited   Inherited     `json:"-"` // never taken from a caller's input
}

// Agent is a registered agent.
type Agent struct {
	ID          string      `json:"agent_id"`
	Name        string      `json:"name"`
	Type        Type        `json:"type"`
	Trust       int         `json:"trust_level"`
	PrincipalID string      `json:"principal_id"`
	Owner       string      `json:"owner"` // the caller who registered it
	Permissions Permissions `json:"permissions"`
	Status      Status      `json:"status"`
	Created     time.Time   `json:"created"`
	Rotated     time.Time   `json:"token_rotated"` // time at which its token was created
	Inherited

	// TokenMark identifies the agent's token. It changes when the token is rotated.
	TokenMark string `json:"-"`

	// reading identifies the read of the database that returned the agent. Agents with the same
	// reading are equal.
	reading *byte
}

// Inherited holds the limits inherited from the caller that registered the agent. The agent never
// has more rights than that caller, and its rights end with the caller's.
type Inherited struct {
	Profile string    `json:"profile,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"` // of the agent's token; always a subset of the scopes of its creator
	Expires time.Time `json:"expires,omitzero"`
	// Credentials must all be valid for the agent to act. The list is empty if the operator
	// registered it at the command line.
	Credentials []caller.Credential `json:"-"`
	// Facts are stated about the registrar. Rules about a group apply to the agents of its members.
	Facts caller.Facts `json:"-"`
}

// Outlives reports whether the agent expires after a time; the zero time is never.
func (a Agent) Outlives(end time.Time) bool {
	return !end.IsZero() && (a.Expires.IsZero() || a.Expires.After(end))
}

// Caller returns the agent as the caller of a request that it makes with its own token.
func (a Agent) Caller() caller.Caller {
	return caller.Caller{Principal: a.ID, Kind: caller.Agent, Session: a.ID, Scopes: a.Rights(), Profile: a.Profile,
		Registrar: a.Owner, Facts: a.Facts, Credentials: []caller.Credential{{ID: a.ID, Mark: a.TokenMark,
			Profile: a.Profile, Expires: a.Expires}}}
}

// Rights returns the scopes of the agent's own token.
func (a Agent) Rights() []string {
	if len(a.Credentials) == 0 { // the operator registered it
		return []string{caller.ScopeRun}
	}
	return slices.Clone(a.Scopes)
}

// Object returns the agent as an object of access checks.
func (a Agent) Object() caller.Object {
	return caller.Object{Kind: caller.AgentKind, Owner: caller.Owner{Principal: a.Owner, Session: a.ID,
		Profile: a.Profile}}
}

// LedgerAccount returns the name of the agent's account in the ledger of budgets.
func (a Agent) LedgerAccount() string { return agentAccount + a.ID }

// Limits of names and lists in a registration.
const (
	MaxName = 200 // bytes
	maxList = 1000
)

// The default budget.
const (
	defaultDayCost      = 100 * budget.USD
	defaultHourRequests = int64(1000)
)

// ParseRegistration parses a registration from JSON and rejects unknown members. The error is a
// sentence for the author of the registration.
func ParseRegistration(raw []byte) (Registration, error) {
	var r Registration
	if err := strictjson.Unmarshal(raw, &r); err != nil {
		return r, err
	}
	return r, r.Check()
}

// Check returns an error that describes the first problem of a registration, in a sentence for its
// author.
func (r *Registration) Check() error {
	if err := errors.Join(CheckName("name", r.Name), CheckName("principal_id", r.PrincipalID)); err != nil {
		return err
	}
	if !slices.Contains(types, r.Type) {
		return fmt.Errorf("type %q is not one of supervised, autonomous, trusted and untrusted", r.Type)
	}
	for _, engine := range r.Permissions.AllowedEngines {
		if known := risk.Engines(); !slices.Contains(known, engine) {
			return fmt.Errorf("permissions.allowed_engines: there is no engine %q%s", engine,
				nearest.Hint(engine, known))
		}
	}
	for name, list := range map[string][]string{"allowed_tools": r.Permissions.AllowedTools,
		"blocked_tools": r.Permissions.BlockedTools} {
		if len(list) > maxList {
			return fmt.Errorf("permissions.%s has %d entries, and %d are allowed", name, len(list), maxList)
		}
		for _, tool := range list {
			if err := CheckName("permissions."+name, tool); err != nil {
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

// CheckName returns an error if a name is missing, too long, or has control characters.
func CheckName(field, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return fmt.Errorf("%s is missing or empty", field)
	case len(name) > MaxName:
		return fmt.Errorf("%s is longer than %d bytes", field, MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, IsControl):
		return fmt.Errorf("%s has control characters", field)
	}
	return nil
}

// IsControl reports whether a character is a control character, or not valid in UTF-8.
func IsControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }
