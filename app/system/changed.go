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
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/caller"
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
	text, err := json.MarshalIndent(definition, "", "  ")
	if err != nil {
		text = definition
	}
	var out bytes.Buffer
	for line := range strings.Lines(string(text)) {
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

// ErrOtherChange is returned if a tool has not changed, or its change is not the one shown.
var ErrOtherChange = errors.New("the tool's definition is not the one that was looked at")

// AcceptTool allows a tool again with its changed definition. digest must be that of the definition
// that the caller was shown. AcceptTool writes an audit record first.
func (s *System) AcceptTool(ctx context.Context, who caller.Caller, serverID, toolName, digest string) error {
	if !s.mayChange(who, serverID) {
		return ErrOtherChange
	}
	changed := s.ChangedTools(who)
	at := slices.IndexFunc(changed, func(c pins.Change) bool {
		return c.ServerID == serverID && c.ToolName == toolName && c.Found.Digest == digest
	})
	if at < 0 {
		return ErrOtherChange
	}
	if err := accept(ctx, s.config, s.log, identityOf(who), changed[at:at+1]); err != nil {
		return err
	}
	s.catalog.takeAccepted(ctx)
	return nil
}

// AcceptChanges allows tools again with their changed definitions, all or none. It first writes an
// audit record that names the user of this process.
func AcceptChanges(ctx context.Context, c *config.Config, changes []pins.Change) error {
	return withLog(c, func(log *audit.Log) error {
		return accept(ctx, c, log, audit.Identity{Principal: Principal()}, changes)
	})
}

func accept(ctx context.Context, c *config.Config, log *audit.Log, by audit.Identity, changes []pins.Change) error {
	book, err := OpenPins(c)
	if err != nil {
		return err
	}
	for _, change := range changes {
		err := log.Append(ctx, audit.Record{
			Kind: audit.KindOperator, Identity: by, Detail: "a changed definition is accepted",
			Act: audit.Act{ServerID: change.ServerID, ToolName: change.ToolName, DefinitionDigest: change.Found.Digest},
		})
		if err != nil {
			return err
		}
	}
	return book.Accept(ctx, changes, time.Now())
}
