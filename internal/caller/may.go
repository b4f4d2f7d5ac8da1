package caller

import (
	"slices"
	"strings"
)

// The scopes of a credential.
const (
	ScopeRun     = "run"     // use the MCP faces: search, run code; ask the engines
	ScopeVerify  = "verify"  // ask the engines
	ScopeAgents  = "agents"  // register agents and announce their actions, see AgentsPrefix
	ScopeApprove = "approve" // answer questions
	ScopeAudit   = "audit"   // read the audit log
	ScopeSlash   = "slash"   // lower the reputation of agents
	ScopeAdmin   = "admin"   // all of these, and the things of others
	// ScopeAllRuns is for the things of others alone. ScopeAdmin comes with it.
	ScopeAllRuns = "runs:all"
)

// AgentsPrefix and the type of an agent, such as "agents:supervised", are ScopeAgents for agents of
// at most that type. ScopeAgents alone is for all types.
const AgentsPrefix = ScopeAgents + ":"

// Has reports whether a caller has a scope. The user of the operating system has the scope
// run without being given it.
func (c Caller) Has(scope string) bool {
	return slices.Contains(c.Scopes, scope) || slices.Contains(c.Scopes, ScopeAdmin) ||
		scope == ScopeAgents && slices.ContainsFunc(c.Scopes, isAgents) ||
		c.Kind == Local && len(c.Scopes) == 0 && scope == ScopeRun
}

func isAgents(scope string) bool { return strings.HasPrefix(scope, AgentsPrefix) }

// Door is a way by which callers reach objects.
type Door int

// The doors.
const (
	Hosts  Door = iota // the MCP faces: hosts see what belongs to their own session
	People             // the console and /v1: people see what belongs to their principal, in all sessions
)

// Kind of an Object.
type ObjectKind string

// The kinds of objects.
const (
	Run       ObjectKind = "run" // and its output, and a job
	Question  ObjectKind = "question"
	File      ObjectKind = "file"
	Recording ObjectKind = "recording"
	Log       ObjectKind = "log" // the audit log, and metrics: of all callers and profiles
	Server    ObjectKind = "server"
	Tool      ObjectKind = "tool"
	AgentKind ObjectKind = "agent"
	Remote    ObjectKind = "remote agent" // registered elsewhere and pinned here, for all callers
	Token     ObjectKind = "token"        // of a caller; of all principals, within its profile
	// Configuration is the configuration file and the policy files. They name programs that are started on
	// this machine.
	Configuration ObjectKind = "configuration"
)

// Act is what a caller wants to do with an object. Change includes to answer, to cancel and
// to manage.
type Act int

// The acts.
const (
	See Act = iota
	Change
)

// Object is something that a caller wants to reach.
type Object struct {
	Kind ObjectKind
	// Owner is whom the object belongs to. Of an agent, Principal is the whole name of the
	// caller that registered it, and Session the agent's ID. Of a server and a tool only
	// Profile counts: the caller's own, if the profile shows the object. The log and the
	// configuration have no owner.
	Owner Owner
	// Roles are those that a question asks for an approval.
	Roles []string
	// Givers are the keys (Caller.Key) of those who gave a grant.
	Givers []string
}

// scopes maps each act to the scope that it needs. An act that is not listed is denied.
var scopes = map[ObjectKind]map[Act]string{
	Run:       {See: ScopeRun, Change: ScopeRun},
	Question:  {See: ScopeApprove, Change: ScopeApprove},
	File:      {See: ScopeRun},
	Recording: {See: ScopeRun},
	Log:       {See: ScopeAudit},
	Server:    {See: ScopeRun, Change: ScopeAdmin},
	Tool:      {See: ScopeRun, Change: ScopeAdmin},
	AgentKind: {See: ScopeAgents, Change: ScopeAgents},
	Remote:    {See: ScopeAgents, Change: ScopeAdmin},
	Token:     {See: ScopeAdmin, Change: ScopeAdmin},

	Configuration: {See: ScopeAdmin, Change: ScopeAdmin},
}

// ScopeFor returns the scope that an act needs, for messages; empty if it is always denied.
func ScopeFor(act Act, kind ObjectKind) string { return scopes[kind][act] }

// May reports whether a caller may do something with an object by a door. Every door asks
// this function: the caller needs the scope, the object must be in the caller's profile, and
// it must belong to the caller, unless the caller has the things of others.
func (c Caller) May(door Door, act Act, o Object) bool {
	if !c.Known() {
		return false
	}
	if o.Kind == AgentKind && c.Kind == Agent {
		return act == See && o.Owner.Session == c.Principal
	}
	scope, listed := scopes[o.Kind][act]
	if !listed || !c.Has(scope) {
		return false
	}
	if c.Profile != "" && o.Owner.Profile != c.Profile {
		return false
	}
	switch o.Kind {
	case Log, Server, Tool, Remote, Token:
		return true
	case Configuration:
		return act == See || c.Kind == Local // a person with a link of airlock console
	case AgentKind:
		return o.Owner.Principal == c.Name() || slices.Contains(c.Scopes, ScopeAdmin)
	}
	if slices.Contains(c.Scopes, ScopeAllRuns) {
		return true
	}
	has := func(role string) bool { return slices.Contains(c.Roles, role) }
	if o.Kind == Question && (slices.ContainsFunc(o.Roles, has) || slices.Contains(o.Givers, c.Key())) {
		return true
	}
	mine := c.Owner()
	mine.Profile = o.Owner.Profile // it was compared: a caller without a profile has all
	if door == People {
		mine.Session = o.Owner.Session
	}
	return mine == o.Owner
}
