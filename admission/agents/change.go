package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Never is the expiry of an agent that does not expire.
const Never = "never"

// Change describes changes of a registered agent. Members that are nil are not changed.
type Change struct {
	Name *string `json:"name,omitempty"`
	Type *Type   `json:"type,omitempty"`
	// Permissions replaces each list that is not nil; an empty list allows or blocks nothing.
	Permissions *Permissions `json:"permissions,omitempty"`
	// Budget replaces each limit that is not nil. The spending is kept.
	Budget  *budget.Limits `json:"budget,omitempty"`
	Expires *string        `json:"expires,omitempty"` // RFC 3339 in the future, or Never
}

// ErrKilled is returned if a killed or expired agent is to be changed.
var ErrKilled = errors.New("the agent was killed: register a new one")

// InvalidError is a change that is not valid. Its text is a sentence that names the member.
type InvalidError struct{ Text string }

// Error returns the sentence.
func (e *InvalidError) Error() string { return e.Text }

// changeable are the members of an agent that a Change can set, as they are recorded.
type changeable struct {
	Name        string        `json:"name"`
	Type        Type          `json:"type"`
	Permissions Permissions   `json:"permissions"`
	Budget      budget.Limits `json:"budget"`
	Expires     time.Time     `json:"expires,omitzero"`
}

// apply returns the members after the change. The error is an *InvalidError.
func (c Change) apply(to changeable, now time.Time) (changeable, error) {
	if c.Name != nil {
		to.Name = *c.Name
	}
	if c.Type != nil {
		to.Type = *c.Type
	}
	if p := c.Permissions; p != nil {
		set(&to.Permissions.AllowedEngines, p.AllowedEngines)
		set(&to.Permissions.AllowedTools, p.AllowedTools)
		set(&to.Permissions.BlockedTools, p.BlockedTools)
	}
	if c.Budget != nil {
		to.Budget = to.Budget.With(*c.Budget)
	}
	check := Registration{Name: to.Name, Type: to.Type, PrincipalID: "-", Permissions: to.Permissions,
		Budget: to.Budget}
	if err := check.Check(); err != nil {
		return to, &InvalidError{err.Error()}
	}
	if c.Expires == nil {
		return to, nil
	}
	to.Expires = time.Time{}
	if *c.Expires != Never {
		at, err := time.Parse(time.RFC3339, *c.Expires)
		if err != nil {
			return to, &InvalidError{`expires is neither a time such as 2027-01-31T12:00:00Z nor "never"`}
		}
		if to.Expires = at.UTC().Truncate(time.Second); !to.Expires.After(now) {
			return to, &InvalidError{"expires is not in the future"}
		}
	}
	return to, nil
}

// set replaces a list by one that is not nil.
func set(list *[]string, by []string) {
	if by != nil {
		*list = by
	}
}

// Change changes an agent and returns it. allow is called with the agent as it was and as it will
// be; its error refuses the change. The record in the audit log has the changed members before and
// after. The errors are ErrUnknown, ErrKilled, an *InvalidError, or that of allow.
func (s *Service) Change(ctx context.Context, id string, c Change, by string, allow func(before, after Agent) error) (
	after Agent, err error) {
	err = s.change(ctx, id, by, func(tx database.Tx, a Agent) (string, error) {
		if a.Status == Killed {
			return "", ErrKilled
		}
		standing, err := s.ledger.Standing(ctx, tx, a.LedgerAccount())
		if err != nil {
			return "", err
		}
		was := changeable{a.Name, a.Type, a.Permissions, standing.Limits, a.Expires}
		is, err := c.apply(was, s.opts.Now())
		if err != nil {
			return "", err
		}
		after = a
		after.Name, after.Type, after.Trust, after.Permissions = is.Name, is.Type, is.Type.Trust(), is.Permissions
		after.Expires = is.Expires
		for _, one := range a.Credentials {
			if after.Outlives(one.Expires) {
				return "", &InvalidError{"expires is later than " + one.Expires.UTC().Format(time.RFC3339) +
					", when the credential that the agent was registered with expires"}
			}
		}
		if err := allow(a, after); err != nil {
			return "", err
		}
		if err := s.storeChange(ctx, tx, after, is.Budget); err != nil {
			return "", err
		}
		return changes(was, is)
	})
	return after, err
}

// storeChange writes the members that a Change can set.
func (s *Service) storeChange(ctx context.Context, tx database.Tx, a Agent, limits budget.Limits) error {
	permissions, err := json.Marshal(a.Permissions)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE agent SET name = ?, type = ?, permissions = ?, expires = ? WHERE id = ?`,
		a.Name, a.Type, string(permissions), seconds(a.Expires), a.ID); err != nil {
		return err
	}
	return s.ledger.SetLimits(ctx, tx, a.LedgerAccount(), limits)
}

// maxRecorded is the maximum number of bytes of the members before or after a change in the audit
// log. Longer ones are cut, and followed by their digest.
const maxRecorded = 64 << 10

// changes returns the changed members before and after, for the audit log.
func changes(was, is changeable) (string, error) {
	before, err := membersOf(was)
	if err != nil {
		return "", err
	}
	after, err := membersOf(is)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if bytes.Equal(before[name], after[name]) {
			delete(before, name)
			delete(after, name)
		}
	}
	from, err := recorded(before)
	if err != nil {
		return "", err
	}
	to, err := recorded(after)
	return fmt.Sprintf("agent changed from %s to %s", from, to), err
}

func membersOf(c changeable) (members map[string]json.RawMessage, err error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return members, strictjson.UnmarshalOpen(raw, &members)
}

func recorded(members map[string]json.RawMessage) (string, error) {
	raw, err := json.Marshal(members)
	if err != nil || len(raw) <= maxRecorded {
		return string(raw), err
	}
	return truncate.Bytes(string(raw), maxRecorded) + " (" + canon.Digest(raw) + ")", nil
}
