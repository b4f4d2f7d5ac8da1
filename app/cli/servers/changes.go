package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

type toolsDiffVerb struct {
	verb.ConfigFlag
	Full bool `help:"Show long lines whole, not only what changed in them."`
	JSON bool `name:"json" help:"Print JSON, which does not count as shown to a person."`
}

// changedTool is one tool in the output of --json.
type changedTool struct {
	ServerID string          `json:"server_id"`
	ToolName string          `json:"tool_name"`
	Digest   string          `json:"digest"` // of the current definition
	Since    *time.Time      `json:"since,omitempty"`
	Before   json.RawMessage `json:"before,omitempty"`
	Now      json.RawMessage `json:"now,omitempty"`
}

// Run prints the changes of each withheld tool as a unified diff, and records which definition was
// shown. accept accepts only that definition.
func (v *toolsDiffVerb) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	changed, err := changes(ctx, c, s)
	if err != nil {
		return err
	}
	if v.JSON {
		tools := []changedTool{}
		for _, c := range changed {
			tool := changedTool{c.ServerID, c.ToolName, c.Found.Digest, &c.Pinned.Since, c.Pinned.Definition,
				c.Found.Definition}
			if c.IsNew() {
				tool.Since = nil
			}
			tools = append(tools, tool)
		}
		return verb.PrintLine(s.Out, map[string]any{"changed": tools})
	}
	if err := verb.Paged(s, func(w io.Writer) error { return v.write(w, changed) }); err != nil {
		return err
	}
	if len(changed) == 0 {
		_, err := fmt.Fprintln(s.Out, "no tool is withheld: none has changed since it was first seen")
		return err
	}
	return upstreams.MarkShown(ctx, c, changed)
}

// write prints the differences.
func (v *toolsDiffVerb) write(w io.Writer, changed []pins.Change) error {
	for _, change := range changed {
		text := pins.Difference(change)
		if !v.Full {
			text = condense(text, verb.PainterFor(w))
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// changes connects to the servers and returns the tools that are withheld. If a server is missing,
// it returns an error, because it cannot know whether the tools of that server changed.
func changes(ctx context.Context, c *config.Config, s *verb.Streams) ([]pins.Change, error) {
	done := verb.Progress(s, "asking "+verb.Counted(len(c.Servers), "server"))
	servers, err := system.OpenCatalog(ctx, c, system.Options{Version: verb.Version,
		Logger: verb.NewLogger(s.Err, false, slog.LevelError)})
	done()
	if err != nil {
		return nil, err
	}
	for _, server := range servers.Snapshot().Servers() {
		if server.Problem != "" {
			err = verb.WithHint(fmt.Errorf("the server %q is missing, so its tools cannot be compared: %s", server.ID,
				server.Problem),
				"airlock tools list", verb.ExitFailed)
			break
		}
	}
	return servers.Changed(), errors.Join(err, servers.Close())
}

type toolsAcceptVerb struct {
	verb.ConfigFlag
	Server string `arg:"" optional:"" help:"The server's ID."`
	Tool   string `arg:"" optional:"" help:"The tool's name; by default every withheld tool of the server."`
	All    bool   `help:"Every withheld tool of every server."`
	JSON   bool   `name:"json" help:"Print JSON."`
	Digest string `placeholder:"HEX" help:"Only the definition with this digest, as diff printed it; by default the one that diff showed last."`
}

// digestForm matches the values of --digest: the short form, or a longer prefix.
var digestForm = lazyregexp.New(`^[0-9a-f]{16,64}$`)

// Run accepts definitions that a person has seen. It accepts all requested definitions or none.
func (v *toolsAcceptVerb) Run(ctx context.Context, s *verb.Streams) error {
	v.Digest = strings.TrimPrefix(v.Digest, "sha256:")
	if err := v.check(); err != nil {
		return err
	}
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	if err := verb.GuardedIn(c, "accepting a changed tool"); err != nil { // a cluster has its pins in its database
		return err
	}
	changed, err := changes(ctx, c, s)
	if err != nil {
		return err
	}
	chosen, err := v.choose(changed)
	if err != nil {
		return err
	}
	if err := upstreams.AcceptChanges(ctx, c, chosen); errors.Is(err, pins.ErrChangedMeanwhile) {
		return verb.WithHint(err, lookAgain, verb.ExitRefused)
	} else if err != nil {
		return err
	}
	if v.JSON {
		tools := []changedTool{}
		for _, c := range chosen {
			tools = append(tools, changedTool{ServerID: c.ServerID, ToolName: c.ToolName, Digest: c.Found.Digest})
		}
		return verb.PrintLine(s.Out, map[string]any{"accepted": tools})
	}
	for _, change := range chosen {
		if _, err := fmt.Fprintf(s.Out, "accepted %s %s %s\n", change.ServerID, catalog.Quote(change.ToolName),
			pins.ShortDigest(change.Found)); err != nil {
			return err
		}
	}
	return nil
}

// lookAgain is the hint for a definition that has to be looked at before it can be accepted.
const lookAgain = "look at it with `airlock tools diff`"

func (v *toolsAcceptVerb) check() error {
	const usage = "airlock tools accept SERVER [TOOL [--digest HEX]], or airlock tools accept --all"
	switch {
	case v.All == (v.Server != ""):
		return verb.Usage("name a server, or say --all", usage)
	case v.Digest != "" && v.Tool == "":
		return verb.Usage("--digest needs TOOL", usage)
	case v.Digest != "" && !digestForm.MatchString(v.Digest):
		return verb.Usage(fmt.Sprintf("%q is not a digest of 16 to 64 hex digits", v.Digest), "airlock tools diff")
	}
	return nil
}

// choose returns the requested changes. If a definition is not the one that was shown, it returns
// an error.
func (v *toolsAcceptVerb) choose(changed []pins.Change) ([]pins.Change, error) {
	chosen := slices.DeleteFunc(slices.Clone(changed), func(c pins.Change) bool {
		return !v.All && c.ServerID != v.Server || v.Tool != "" && c.ToolName != v.Tool
	})
	switch {
	case len(chosen) == 0 && v.All:
		return nil, verb.Usage("no tool is withheld", "airlock tools diff")
	case len(chosen) == 0:
		return nil, verb.Usage(fmt.Sprintf("no such tool of the server %q is withheld", v.Server),
			"airlock tools diff")
	}
	for _, c := range chosen {
		if err := v.seen(c); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// seen returns an error if the current definition of the tool is not the one that was shown.
func (v *toolsAcceptVerb) seen(c pins.Change) error {
	name := fmt.Sprintf("the tool %s of the server %q", catalog.Quote(c.ToolName), c.ServerID)
	looked := cmp.Or(v.Digest, strings.TrimPrefix(c.Pinned.Shown, "sha256:"))
	switch {
	case looked == "":
		return verb.WithHint(fmt.Errorf("the change of %s has not been looked at yet", name), lookAgain+" first",
			verb.ExitRefused)
	case !strings.HasPrefix(strings.TrimPrefix(c.Found.Digest, "sha256:"), looked):
		return verb.WithHint(fmt.Errorf("%s has another definition than the one that was looked at: it is %s now", name,
			pins.ShortDigest(c.Found)),
			lookAgain+" again", verb.ExitRefused)
	}
	return nil
}
