package rules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/policies"
)

// CheckConfirmed returns an error unless a person has confirmed a configuration that was
// found in the current directory, where another project or person may have put it.
func CheckConfirmed(c *config.Config) error {
	k, err := NewConfirmation(c)
	if err != nil || k.IsDone() {
		return err
	}
	what := "was not confirmed"
	if k.IsKnown {
		what = "has changed since it was confirmed"
	}
	return &setup.Error{Err: fmt.Errorf("the configuration %q of this directory %s, and it names programs that are "+
		"started",
		c.File, what), Advice: "look at it and confirm it: airlock trust"}
}

// IsConfirmed reports whether a configuration permits nothing more than the one that a person
// confirmed, or needs no confirmation.
func IsConfirmed(c *config.Config) (bool, error) {
	if c.File == "" {
		return true, nil
	}
	k, err := NewConfirmation(c)
	if err != nil {
		return false, err
	}
	return trust.IsFixed(k.After) || k.IsKnown && len(k.Why) == 0, nil
}

// LastConfirmed returns the configuration of the file at path that a person confirmed last, or nil. Its
// credentials may be missing.
func LastConfirmed(path string) *config.Config {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil
	}
	content, found, err := trust.Open(home).Find(path)
	if err != nil || !found {
		return nil
	}
	c, err := config.Read(content.File, content.Text, config.LookupOrUnset)
	if err != nil {
		return nil
	}
	return c
}

// Confirmation is a configuration that a person is asked to confirm.
type Confirmation struct {
	Before, After trust.Content
	IsKnown       bool     // an earlier content was confirmed, which is Before
	Why           []string // the keys that may permit more than before
	book          *trust.Book
	config        *config.Config
}

// NewConfirmation reads the files of a configuration and the content that was confirmed before.
func NewConfirmation(c *config.Config) (*Confirmation, error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return nil, err
	}
	files, err := PolicyFiles(c)
	if err != nil {
		return nil, err
	}
	if _, err := policies.Load(files...); err != nil {
		return nil, err
	}
	k := &Confirmation{After: trust.ContentOf(c, files), book: trust.Open(directories.Home), config: c}
	if k.Before, k.IsKnown, err = k.book.Find(c.File); err != nil {
		return nil, err
	}
	if k.IsKnown {
		k.Why = trust.Widens(k.Before, k.After, config.LookupOrUnset)
	}
	return k, nil
}

// IsDone reports whether the content is confirmed already.
func (k *Confirmation) IsDone() bool { return k.IsKnown && k.Before.Digest() == k.After.Digest() }

// Difference returns the changes, without credentials.
func (k *Confirmation) Difference() string {
	return credentials.Printed().Text(string(trust.Difference(k.Before, k.After)))
}

// Confirm records that the user of this process confirms the content, and keeps it.
func (k *Confirmation) Confirm(ctx context.Context) error {
	by := audit.Identity{Principal: setup.Principal()}
	return state.With(k.config, "", func(s *state.State) error {
		return state.WithLog(k.config, func(log *audit.Log) error { return k.keep(ctx, s, log, by) })
	})
}

// MayConfirm reports whether a caller may confirm the configuration, or add to it what starts programs on
// this machine.
func MayConfirm(who caller.Caller) bool {
	return who.May(caller.People, caller.Change, caller.Object{Kind: caller.Configuration})
}

// Confirmation returns the configuration as its files are now, with the content that was confirmed last.
func (r *Rules) Confirmation() (*Confirmation, error) {
	if r.opts.Reread == nil || r.Config().File == "" {
		return nil, errNoFile
	}
	c, err := r.opts.Reread()
	if err != nil {
		return nil, setup.Advise(err)
	}
	credentials.HoldPrinted(c)
	k, err := NewConfirmation(c)
	if err != nil {
		return nil, setup.Advise(err)
	}
	return k, nil
}

// ErrOtherContent is returned if the files are not the ones that a person was shown.
var ErrOtherContent = errors.New("the configuration is not the one that was shown")

// Confirm confirms the configuration for a caller who may, and puts it in force. digest must be that of
// the content that the caller was shown.
func (r *Rules) Confirm(ctx context.Context, who caller.Caller, digest string) error {
	if !MayConfirm(who) {
		return &auth.ScopeError{Scope: caller.ScopeAdmin, Caller: who}
	}
	k, err := r.Confirmation()
	if err != nil {
		return err
	}
	if k.After.Digest() != digest {
		return ErrOtherContent
	}
	if err := k.keep(ctx, r.opts.State, r.opts.Log, audit.IdentityOf(who)); err != nil {
		return err
	}
	r.reload(ctx, false)
	return nil
}

// ForgetShared takes back for all nodes of a cluster that the content of a configuration is confirmed. Without a
// cluster, it does nothing.
func ForgetShared(ctx context.Context, c *config.Config) error {
	if c.Cluster.Database == "" {
		return nil
	}
	return state.With(c, "", func(s *state.State) error {
		db, err := s.Open(ctx)
		if err != nil {
			return err
		}
		return trust.ForgetShared(ctx, db, c.File)
	})
}

// keep records the confirmation, keeps it for this node, and shares it with the others of a cluster.
func (k *Confirmation) keep(ctx context.Context, s *state.State, log *audit.Log, by audit.Identity) error {
	if err := log.Append(ctx, audit.Record{
		Kind: audit.KindOperator, Identity: by,
		Detail: fmt.Sprintf("the configuration %q is confirmed, digest %s:\n%s", k.After.File, k.After.Digest(),
			truncate.Bytes(k.Difference(), maxRecordedDiff)),
	}); err != nil {
		return err
	}
	if err := k.book.Keep(k.After, by.Principal); err != nil || !s.IsShared() {
		return err
	}
	db, err := s.Open(ctx)
	if err == nil {
		err = trust.Share(ctx, db, k.After, by.Principal)
	}
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("it is confirmed for this node, and not for the others: %w", err),
			Advice: fmt.Sprintf("when the database answers, run it again: airlock trust %s",
				visible.Word(k.After.File))}
	}
	return nil
}
