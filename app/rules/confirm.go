package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// unconfirmedError is returned for a configuration that may permit more than the one that a person
// confirmed.
type unconfirmedError struct {
	after trust.Content
	why   []string // keys and policies because of which it may permit more
	diff  []byte
}

// Error names the keys and policies that may permit more, in at most a few hundred bytes.
func (e *unconfirmedError) Error() string {
	const most = 300
	why := strings.Join(strings.Fields(strings.Join(e.why, "; ")), " ")
	return fmt.Sprintf("the configuration %q may permit more than the one that was confirmed (%s)", e.after.File,
		truncate.Bytes(why, most))
}

// Hint names the command that confirms it.
func (e *unconfirmedError) Hint() string {
	return fmt.Sprintf("look at the difference and confirm it in your own terminal: airlock trust %s",
		visible.Word(e.after.File))
}

// maxRecordedDiff bounds the difference in an audit record, in bytes.
const maxRecordedDiff = 8 << 10

// detail is the text of the audit record: the difference without credentials.
func (e *unconfirmedError) detail() string {
	return "a change that may permit more waits for a person's confirmation:\n" +
		truncate.Bytes(credentials.Printed().Text(string(e.diff)), maxRecordedDiff)
}

// confirmed returns an *unconfirmedError if after may permit more than before and no
// person has confirmed it. Otherwise after is the confirmed configuration from then on, unless
// the files have changed again: a person may have confirmed what they are now.
func confirmed(ctx context.Context, home string, s *state.State, before, after trust.Content) error {
	if after.File == "" || trust.IsFixed(after) {
		return nil
	}
	book := trust.Open(home)
	if found, err := book.IsConfirmed(after); err != nil || found {
		return err
	}
	by := setup.Principal()
	if why := trust.Widens(before, after, config.LookupOrUnset); len(why) > 0 {
		elsewhere, found, err := confirmedElsewhere(ctx, s, after)
		if !found {
			return errors.Join(&unconfirmedError{after, why, trust.Difference(before, after)}, err)
		}
		by = elsewhere
	}
	return book.Edit(ctx, func() error {
		if !after.IsCurrent() {
			return nil
		}
		return book.Keep(after, by)
	})
}

// confirmedElsewhere returns the person who has confirmed a content at any node of the cluster.
func confirmedElsewhere(ctx context.Context, s *state.State, c trust.Content) (by string, found bool, err error) {
	if !s.IsShared() {
		return "", false, nil
	}
	db, err := s.Open(ctx)
	if err != nil {
		return "", false, err
	}
	return trust.Shared(ctx, db, c)
}

// ConfirmFirst confirms a configuration that was never confirmed and that an agent's host names, if no
// other process serves agents. Otherwise a command of a served host could name a file that it wrote, so
// ConfirmFirst returns an error. In a cluster, such a command could have another state directory, so it also returns
// one if a host that the cluster serves may have started this process. It must be called before this process announces
// itself: a process that sees another one announced then also sees what that one has confirmed.
func ConfirmFirst(c *config.Config, home string) error {
	if c.File == "" {
		return nil
	}
	served, err := approval.IsServed(home) // before the book is read, see above
	if err != nil {
		return err
	}
	files, err := PolicyFiles(c)
	if err != nil {
		return err
	}
	book, now := trust.Open(home), trust.ContentOf(c, files)
	_, found, err := book.Find(now.File)
	if err != nil || found || trust.IsFixed(now) {
		return err
	}
	apart := state.ApartCheck(c)
	switch {
	case apart == nil && !served:
		return book.Keep(now, setup.Principal())
	case apart != nil && !errors.Is(apart, approval.ErrOfHost):
		return apart
	}
	refused := fmt.Errorf("the configuration %q was never confirmed, and other agents are served", c.File)
	if apart != nil {
		refused = fmt.Errorf("%w: %w", refused, apart)
	}
	return &setup.Error{Err: errors.Join(refused, state.WithLog(c, func(log *audit.Log) error {
		return log.Append(context.Background(), audit.Record{Kind: audit.KindOperator,
			Identity: audit.Identity{Principal: setup.Principal()}, Effect: audit.Effect{Outcome: audit.OutcomeRefused},
			Detail: refused.Error()})
	})), Advice: fmt.Sprintf("look at it and confirm it in your own terminal: airlock trust %s",
		visible.Word(c.File))}
}

// Admit refuses to serve a configuration, with the policy files that were read, that may permit more than the confirmed
// one, unless a person starts this process. See ConfirmFirst for the first configuration at a path.
func Admit(ctx context.Context, c *config.Config, read Reading, home string, s *state.State, log *audit.Log,
	byPerson bool) error {
	if c.File == "" {
		return nil
	}
	book, now := trust.Open(home), trust.ContentOf(c, read.files)
	before, found, err := book.Find(now.File)
	if err != nil {
		return err
	}
	if !found || byPerson {
		if trust.IsFixed(now) {
			return nil
		}
		return book.Keep(now, setup.Principal())
	}
	err = confirmed(ctx, home, s, before, now)
	if unconfirmed, ok := errors.AsType[*unconfirmedError](err); ok {
		if err := log.Append(ctx, unconfirmed.record()); err != nil {
			return err
		}
		return &setup.Error{Err: unconfirmed, Advice: unconfirmed.Hint()}
	}
	return err
}

// record is the audit record of a change that is not in force.
func (e *unconfirmedError) record() audit.Record {
	return audit.Record{
		Kind: audit.KindOperator, Identity: audit.Identity{Principal: setup.Principal()},
		Effect: audit.Effect{Outcome: audit.OutcomeRefused},
		Detail: e.detail(),
	}
}
