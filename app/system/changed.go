package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// shortDigest is how many hex digits of a definition's digest are shown and accepted as its name.
// They are 64 bits, too many to find a second definition with the same digits.
const shortDigest = 16

// ShortDigest returns the first digits of a definition's digest, for people.
func ShortDigest(p pins.Pin) string { return strings.TrimPrefix(p.Digest, "sha256:")[:shortDigest] }

// Difference returns a change as a unified diff for people, with the digest of the new definition.
// All of its characters are printable ASCII.
func Difference(c pins.Change) []byte {
	name := fmt.Sprintf("%s %s", c.ServerID, catalog.Quote(c.ToolName))
	if c.IsNew() {
		return diff.Diff(name+" not seen yet", nil, name+" now, digest "+ShortDigest(c.Found),
			printable(c.Found.Definition))
	}
	return diff.Diff(name+" seen "+c.Pinned.Since.Format(time.RFC3339), printable(c.Pinned.Definition),
		name+" now, digest "+ShortDigest(c.Found), printable(c.Found.Definition))
}

// printable formats a definition with one member on each line. It escapes every character that is
// not printable ASCII, because a person compares the result and nothing may be hidden in it.
func printable(definition json.RawMessage) []byte {
	text, err := canon.Pretty(definition)
	if err != nil {
		text = string(definition)
	}
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		quoted := fmt.Sprintf("%+q", strings.TrimSuffix(line, "\n"))
		out.WriteString(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// ChangedTools returns the tools that the caller would see and that are withheld,
// because their definitions changed since they were first seen.
func (s *System) ChangedTools(who caller.Caller) []pins.Change {
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
// toolName names. digest must be the ShownDigest of what the caller was shown. AcceptTools writes audit records first.
func (s *System) AcceptTools(ctx context.Context, who caller.Caller, serverID, toolName, digest string) error {
	if !s.mayChange(who, serverID) {
		return ErrOtherChange
	}
	changed := slices.DeleteFunc(s.ChangedTools(who), func(c pins.Change) bool {
		return c.ServerID != serverID || toolName != "" && c.ToolName != toolName
	})
	if len(changed) == 0 || ShownDigest(changed) != digest {
		return ErrOtherChange
	}
	if err := accept(ctx, s.state, s.config, s.log, identityOf(who), changed); err != nil {
		return err
	}
	s.catalog.TakeAccepted(ctx)
	return nil
}

// ShownDigest returns a digest of definitions that a person was shown, and of the names of their tools.
func ShownDigest(changes []pins.Change) string {
	var shown []byte
	for _, c := range changes {
		shown = fmt.Appendf(shown, "%q %q %s\n", c.ServerID, c.ToolName, c.Found.Digest)
	}
	return canon.Digest(shown)
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
