package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
)

// openPins returns the file with the definitions that were seen before. Each
// configuration file has its own: two may use one name for different servers.
func openPins(c *config.Config) (*pins.File, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(canon.Digest([]byte(c.File)), "sha256:")
	return pins.NewFile(filepath.Join(store.Pins(home), name[:16]+".json")), nil
}

// withhold puts a stand-in in the place of each tool whose definition changed
// since it was first seen: nobody has looked at what it does now.
func withhold(servers []catalog.Server, changed []pins.Change) []catalog.Server {
	isChanged := map[pins.Ref]bool{}
	for _, c := range changed {
		isChanged[pins.Ref{ServerID: c.ServerID, ToolName: c.ToolName}] = true
	}
	kept := slices.Clone(servers)
	for i := range kept {
		kept[i].Tools = slices.Clone(kept[i].Tools)
		for j, tool := range kept[i].Tools {
			if isChanged[pins.Ref{ServerID: tool.ServerID, ToolName: tool.Name}] {
				kept[i].Tools[j] = catalog.Withhold(tool)
			}
		}
	}
	return kept
}

// tellChanged says which tools are withheld and what an operator does about it.
func tellChanged(stderr io.Writer, changed []pins.Change) {
	for _, c := range changed {
		fmt.Fprintf(stderr, "airlock: the tool %s of the server %q is withheld: its definition changed since it was first seen\n",
			catalog.Quote(c.ToolName), c.ServerID)
	}
	if len(changed) > 0 {
		fmt.Fprintln(stderr, "hint: look at the change with `airlock tools diff`, then `airlock tools accept SERVER TOOL`")
	}
}

// changes connects the servers and returns which tools are withheld.
func changes(ctx context.Context, flag configFlag, s *streams) (*config.Config, []pins.Change, error) {
	c, err := flag.load(s.err)
	if err != nil {
		return nil, nil, err
	}
	at := &system{config: c, logger: newLogger(s.err, false, slog.LevelError), undo: &cleanup.Stack{}}
	err = at.connect(ctx, io.Discard)
	if err == nil {
		err = at.allThere()
	}
	err = errors.Join(err, at.Close())
	return c, at.changed, err
}

// allThere fails where a server is missing: of its tools nobody can say whether
// they changed.
func (s *system) allThere() error {
	for _, server := range s.Snapshot().Servers() {
		if server.Problem != "" {
			return &hinted{fmt.Errorf("the server %q is missing, so its tools cannot be compared: %s", server.ID, server.Problem),
				"airlock tools list", ExitFailed}
		}
	}
	return nil
}
