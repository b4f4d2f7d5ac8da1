package upstreams

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// ChangedTools returns the tools that the caller would see and that are withheld,
// because their definitions changed since they were first seen.
func (s *Servers) ChangedTools(who caller.Caller) []pins.Change {
	view := s.Snapshot(who)
	return slices.DeleteFunc(slices.Clone(s.catalog.Changed()), func(c pins.Change) bool {
		_, shown := view.Tool(c.ServerID, c.ToolName)
		return !shown
	})
}

// ErrOtherChange is returned if no such tool is withheld, or a definition is not the one that was shown.
var ErrOtherChange = errors.New(
	"what is withheld is not what was shown: look at the current definitions and accept those")

// AcceptTools allows withheld tools of a server with their definitions as they are now: all of them, or the one that
// toolName names. digest must be the pins.ShownDigest of what the caller was shown.
// AcceptTools writes audit records first.
func (s *Servers) AcceptTools(ctx context.Context, who caller.Caller, serverID, toolName, digest string) error {
	if !s.MayChange(who, serverID) {
		return ErrOtherChange
	}
	changed := slices.DeleteFunc(s.ChangedTools(who), func(c pins.Change) bool {
		return c.ServerID != serverID || toolName != "" && c.ToolName != toolName
	})
	if len(changed) == 0 || pins.ShownDigest(changed) != digest {
		return ErrOtherChange
	}
	if err := accept(ctx, s.opts.State, s.opts.Config(), s.opts.Log, audit.IdentityOf(who), changed); err != nil {
		return err
	}
	s.catalog.TakeAccepted(ctx)
	return nil
}

// AcceptChanges allows tools again with their changed definitions, all or none. It first writes an
// audit record that names the user of this process.
func AcceptChanges(ctx context.Context, c *config.Config, changes []pins.Change) error {
	return state.WithLog(c, func(log *audit.Log) error {
		return state.With(c, "", func(s *state.State) error {
			return accept(ctx, s, c, log, audit.Identity{Principal: setup.Principal()}, changes)
		})
	})
}

// MarkShown stores that a person was shown changed definitions, so that they can be accepted.
func MarkShown(ctx context.Context, c *config.Config, changes []pins.Change) error {
	return state.With(c, "", func(s *state.State) error { return s.Pins(c).MarkShown(ctx, changes) })
}

func accept(ctx context.Context, s *state.State, c *config.Config, log *audit.Log, by audit.Identity,
	changes []pins.Change) error {
	for _, change := range changes {
		err := log.Append(ctx, audit.Record{
			Kind: audit.KindOperator, Identity: by, Detail: "a changed definition is accepted",
			Act: audit.Act{ServerID: change.ServerID, ToolName: change.ToolName, DefinitionDigest: change.Found.Digest},
		})
		if err != nil {
			return err
		}
	}
	err := s.Pins(c).Accept(ctx, changes, time.Now())
	if err == nil && !s.IsShared() { // other processes of this machine look at the pins again
		err = s.RequestRefresh(ctx)
	}
	return err
}
