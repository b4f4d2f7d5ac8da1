package rules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// EditServer changes one server in the file of a configuration, as the user of this process. widen is
// called first if the change may permit more; its error refuses the change. The tools of an added
// server are withheld until a person has accepted them. confirmed reports whether the changed file
// counts as confirmed; it does not if the file had other unconfirmed changes before.
func EditServer(ctx context.Context, c *config.Config, edit config.ServerEdit, widen func() error) (confirmed bool,
	err error) {
	err = state.WithLog(c, func(log *audit.Log) error {
		return state.With(c, "", func(s *state.State) error {
			confirmed, err = editServer(ctx, s, c, log, audit.Identity{Principal: setup.Principal()}, edit, widen)
			return err
		})
	})
	return confirmed, err
}

// EditServer is the function EditServer for a caller, with the configuration file as it is now. Adding a
// server takes the right to change the configuration.
func (r *Rules) EditServer(ctx context.Context, who caller.Caller, edit config.ServerEdit) (confirmed bool,
	err error) {
	if r.opts.Reread == nil {
		return false, errNoFile
	}
	if edit.Add != nil && !MayConfirm(who) || edit.Add == nil && !r.opts.Servers.MayChange(who, edit.ID) {
		return false, upstreams.NoSuchServer(&config.Config{}, edit.ID)
	}
	c, err := r.opts.Reread()
	if err != nil {
		return false, setup.Advise(err)
	}
	return editServer(ctx, r.opts.State, c, r.opts.Log, audit.IdentityOf(who), edit, func() error { return nil })
}

var errNoFile = &setup.Error{Err: errors.New("no configuration file is in use"),
	Advice: "write airlock.yaml, or name a file with --config"}

func editServer(ctx context.Context, s *state.State, c *config.Config, log *audit.Log, by audit.Identity,
	edit config.ServerEdit, widen func() error) (confirmed bool, err error) {
	if c.File == "" {
		return false, errNoFile
	}
	text, err := config.EditServer(c.Text(), edit)
	if err != nil {
		advice := "airlock servers list"
		if errors.Is(err, config.ErrUneditable) {
			advice = "write it to the file, then airlock trust " + visible.Word(c.File)
		}
		return false, &setup.Error{Err: fmt.Errorf("the server %q: %w", edit.ID, err), Advice: advice}
	}
	after, err := config.Read(c.File, text, config.LookupOrUnset)
	if err != nil {
		return false, setup.Advise(err)
	}
	before, err := NewConfirmation(c)
	if err != nil {
		return false, err
	}
	next, err := NewConfirmation(after)
	if err != nil {
		return false, err
	}
	if len(trust.Widens(before.After, next.After, config.LookupOrUnset)) > 0 {
		if err := widen(); err != nil {
			return false, err
		}
	}
	if err := log.Append(ctx, audit.Record{Kind: audit.KindOperator, Identity: by, Act: audit.Act{ServerID: edit.ID},
		Detail: describe(edit) + " in " + c.File}); err != nil {
		return false, err
	}
	if edit.Add != nil {
		if err := s.Pins(c).Quarantine(ctx, edit.ID); err != nil {
			return false, err
		}
	}
	return before.IsDone() || !before.IsKnown, before.book.Edit(ctx, func() error {
		if !before.After.IsCurrent() {
			return &setup.Error{Err: fmt.Errorf("the file %q has changed in the meantime", c.File), Advice: "try again"}
		}
		if before.IsDone() {
			if err := next.keep(ctx, s, log, by); err != nil {
				return err
			}
		}
		return replaceFile(c.File, text)
	})
}

// describe describes an edit for the audit log.
func describe(edit config.ServerEdit) string {
	switch {
	case edit.Origin != "":
		return "server added from " + edit.Origin
	case edit.Add != nil:
		return "server added"
	case edit.Remove:
		return "server removed"
	case *edit.Disabled:
		return "server disabled"
	}
	return "server enabled"
}

// replaceFile writes a file in place of the one at path, with its permissions.
func replaceFile(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return store.WriteFile(path, text, info.Mode().Perm())
}
