package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/policies"
)

// unconfirmedError is returned for a configuration that may permit more than the one that a person
// confirmed.
type unconfirmedError struct {
	file string
	why  []string // keys and policies because of which it may permit more
	diff []byte
}

// Error names the keys and policies that may permit more, in at most a few hundred bytes.
func (e *unconfirmedError) Error() string {
	const most = 300
	why := strings.Join(strings.Fields(strings.Join(e.why, "; ")), " ")
	return fmt.Sprintf("the configuration %q may permit more than the one that was confirmed (%s)", e.file,
		truncate.Bytes(why, most))
}

// Hint names the command that confirms it.
func (e *unconfirmedError) Hint() string {
	return fmt.Sprintf("look at the difference and confirm it in your own terminal: airlock trust %s",
		visible.Word(e.file))
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
func (s *System) confirmed(ctx context.Context, before, after trust.Content) error {
	if after.File == "" || trust.IsFixed(after) {
		return nil
	}
	book := trust.Open(s.directories.Home)
	if found, err := book.IsConfirmed(after); err != nil || found {
		return err
	}
	by := setup.Principal()
	if why := trust.Widens(before, after, places); len(why) > 0 {
		elsewhere, found, err := s.confirmedElsewhere(ctx, after)
		if !found {
			return errors.Join(&unconfirmedError{after.File, why, trust.Difference(before, after)}, err)
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
func (s *System) confirmedElsewhere(ctx context.Context, c trust.Content) (by string, found bool, err error) {
	if !s.state.IsShared() {
		return "", false, nil
	}
	db, err := s.state.Open(ctx)
	if err != nil {
		return "", false, err
	}
	return trust.Shared(ctx, db, c)
}

// confirmationsInterval is how often a node asks whether a refused configuration was confirmed at another node.
const confirmationsInterval = time.Second

// followConfirmations reads the files again while a change of them is refused: a person may confirm it at another node.
func (s *System) followConfirmations(ctx context.Context) {
	ticker := time.NewTicker(confirmationsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, refused := s.Pending(); refused {
			s.reload(ctx, false)
		}
	}
}

// places is os.LookupEnv for readings whose credentials do not matter.
func places(name string) (string, bool) {
	value, set := os.LookupEnv(name)
	if !set {
		value = "unset"
	}
	return value, true
}

// isPersons reports whether a person started this process, and not an agent's host. Such a process
// may permit more than before. isPersons must be called before the process announces itself.
func (o Options) isPersons(home string) bool {
	return o.Host == 0 && approval.WidenCheck(home) == nil
}

// ConfirmFirst confirms a configuration that was never confirmed and that an agent's host names, if no
// other process serves agents. Otherwise a command of a served host could name a file that it wrote, so
// ConfirmFirst returns an error. It must be called before this process announces itself: a process that
// sees another one announced then also sees what that one has confirmed.
func ConfirmFirst(c *config.Config) error {
	if c.File == "" {
		return nil
	}
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	return confirmFirst(c, directories.Home)
}

func confirmFirst(c *config.Config, home string) error {
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
	if !served {
		return book.Keep(now, setup.Principal())
	}
	refused := fmt.Errorf("the configuration %q was never confirmed, and other agents are served", c.File)
	return &setup.Error{Err: errors.Join(refused, state.WithLog(c, func(log *audit.Log) error {
		return log.Append(context.Background(), audit.Record{Kind: audit.KindOperator,
			Identity: audit.Identity{Principal: setup.Principal()}, Effect: audit.Effect{Outcome: audit.OutcomeRefused},
			Detail: refused.Error()})
	})), Advice: fmt.Sprintf("look at it and confirm it in your own terminal: airlock trust %s",
		visible.Word(c.File))}
}

// admit refuses to serve a configuration that may permit more than the confirmed one,
// unless a person starts this process. See ConfirmFirst for the first configuration at a path.
func (s *System) admit(ctx context.Context, byPerson bool) error {
	if !s.opts.Serving || s.config.File == "" {
		return nil
	}
	files, err := PolicyFiles(s.config)
	if err != nil {
		return err
	}
	book, now := trust.Open(s.directories.Home), trust.ContentOf(s.config, files)
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
	err = s.confirmed(ctx, before, now)
	if unconfirmed, ok := errors.AsType[*unconfirmedError](err); ok {
		if err := s.log.Append(ctx, unconfirmed.record()); err != nil {
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
	c, err := config.Read(content.File, content.Text, places)
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
		k.Why = trust.Widens(k.Before, k.After, places)
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
	return state.WithLog(k.config, func(log *audit.Log) error { return k.keep(ctx, log, by) })
}

// MayConfirm reports whether a caller may confirm the configuration, or add to it what starts programs on
// this machine.
func MayConfirm(who caller.Caller) bool {
	return who.May(caller.People, caller.Change, caller.Object{Kind: caller.Configuration})
}

// Confirmation returns the configuration as its files are now, with the content that was confirmed last.
func (s *System) Confirmation() (*Confirmation, error) {
	if s.opts.Reread == nil || s.Config().File == "" {
		return nil, errNoFile
	}
	c, err := s.opts.Reread()
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
func (s *System) Confirm(ctx context.Context, who caller.Caller, digest string) error {
	if !MayConfirm(who) {
		return &auth.ScopeError{Scope: caller.ScopeAdmin, Caller: who}
	}
	k, err := s.Confirmation()
	if err != nil {
		return err
	}
	if k.After.Digest() != digest {
		return ErrOtherContent
	}
	if err := k.keep(ctx, s.log, audit.IdentityOf(who)); err != nil {
		return err
	}
	s.reload(ctx, false)
	return nil
}

// ForgetShared takes back for all nodes of a cluster that the content of a configuration is confirmed. Without a
// cluster, it does nothing.
func ForgetShared(ctx context.Context, c *config.Config) error {
	if c.Cluster.Database == "" {
		return nil
	}
	return state.WithCluster(ctx, c, func(db *database.DB) error { return trust.ForgetShared(ctx, db, c.File) })
}

func (k *Confirmation) keep(ctx context.Context, log *audit.Log, by audit.Identity) error {
	if err := log.Append(ctx, audit.Record{
		Kind: audit.KindOperator, Identity: by,
		Detail: fmt.Sprintf("the configuration %q is confirmed, digest %s:\n%s", k.After.File, k.After.Digest(),
			truncate.Bytes(k.Difference(), maxRecordedDiff)),
	}); err != nil {
		return err
	}
	if err := k.book.Keep(k.After, by.Principal); err != nil || k.config.Cluster.Database == "" {
		return err
	}
	if err := state.WithCluster(ctx, k.config, func(db *database.DB) error {
		return trust.Share(ctx, db, k.After, by.Principal)
	}); err != nil {
		return &setup.Error{Err: fmt.Errorf("it is confirmed for this node, and not for the others: %w", err),
			Advice: fmt.Sprintf("when the database answers, run it again: airlock trust %s",
				visible.Word(k.After.File))}
	}
	return nil
}

// WaitingServers returns the IDs of servers that the configuration file has and that are not in force, because the
// file waits for a person's confirmation or for a restart. It returns none to a caller who may not see the
// configuration.
func (s *System) WaitingServers(who caller.Caller) (waiting []string) {
	_, pending := s.Pending()
	if !pending || s.opts.Reread == nil ||
		!who.May(caller.People, caller.See, caller.Object{Kind: caller.Configuration}) {
		return nil
	}
	next, err := s.opts.Reread()
	if err != nil { // Pending has the reason
		return nil
	}
	for _, server := range next.Servers {
		if _, found := s.Config().Server(server.ID); !found {
			waiting = append(waiting, server.ID)
		}
	}
	return waiting
}
