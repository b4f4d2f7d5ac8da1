// Package access has who can act through Airlock: the registered agents, the tokens of callers over HTTP, and sign-ins
// to servers. Its changes are recorded.
package access

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
)

// Access is one way in which somebody can act through Airlock now.
type Access struct {
	Kind      string     `json:"kind"` // "token", "agent" or "sign-in"
	ID        string     `json:"id"`   // of the token or agent; the server of a sign-in
	Name      string     `json:"name"` // the issuer of a sign-in
	Principal string     `json:"principal"`
	Rights    []string   `json:"rights"` // scopes
	Expires   *time.Time `json:"expires,omitempty"`
	// Used is the day (UTC) of the last use of a token or an agent's token, and the time of the last
	// refresh of a sign-in. It is nil if there was none.
	Used *time.Time `json:"last_used,omitempty"`
	// Created is when the token or agent was created, or when the person signed in.
	Created time.Time `json:"created"`
}

// IsUnusedSince reports whether the access existed at a time and was not used from then on.
func (a Access) IsUnusedSince(t time.Time) bool {
	last := a.Created
	if a.Used != nil {
		last = *a.Used
		if a.Kind != "sign-in" {
			last = last.AddDate(0, 0, 1) // it was used at some time of that day
		}
	}
	return last.Before(t)
}

// accessPage is the number of agents that are read in one query.
const accessPage = 1000

// Access returns what is valid now: tokens, agents that are not ended, and sign-ins to servers.
// Sign-ins that cannot be read are an error, next to the rest.
func (a *Agents) Access(ctx context.Context) ([]Access, error) {
	now := time.Now()
	tokens, err := a.tokens.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []Access
	for _, t := range tokens {
		if t.Revoked == nil && (t.Expires == nil || t.Expires.After(now)) {
			all = append(all, Access{"token", t.ID, t.Name, t.Principal, t.Scopes, t.Expires, t.Used, t.Created})
		}
	}
	used, err := a.tokens.Used(ctx)
	if err != nil {
		return nil, err
	}
	for after := ""; ; {
		page, err := a.List(ctx, agents.Selection{}, after, accessPage)
		if err != nil {
			return nil, err
		}
		for _, agent := range page {
			if agent.Status != agents.Killed && (agent.Expires.IsZero() || agent.Expires.After(now)) {
				all = append(all, accessOf(agent, used))
			}
		}
		if len(page) < accessPage {
			break
		}
		after = page[len(page)-1].ID
	}
	signIns, err := a.opts.State.SignIns().List(ctx)
	for _, s := range signIns {
		if s.Over == "" {
			all = append(all, Access{"sign-in", s.ServerID, s.Issuer, s.Principal, s.Scopes, nil, &s.Renewed,
				s.Began})
		}
	}
	slices.SortStableFunc(all, func(a, b Access) int {
		return cmp.Or(strings.Compare(a.Principal, b.Principal), strings.Compare(b.Kind, a.Kind))
	})
	return all, err
}

func accessOf(agent agents.Agent, used map[string]time.Time) Access {
	one := Access{Kind: "agent", ID: agent.ID, Name: agent.Name, Principal: agent.PrincipalID,
		Rights: agent.Rights(), Created: agent.Created}
	if !agent.Expires.IsZero() {
		one.Expires = &agent.Expires
	}
	if day, ok := used[agent.ID]; ok {
		one.Used = &day
	}
	return one
}
