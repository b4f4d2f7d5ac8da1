package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
)

type toolsRefreshVerb struct {
	verb.ConfigFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// refreshed is one server in the output of --json.
type refreshed struct {
	ServerID string `json:"server_id"`
	Tools    int    `json:"tools"`
	Problem  string `json:"problem,omitempty"`
}

// Run requests the tools of every server, stores the lists for the next start, and makes all
// running Airlocks of this user read their lists again. It fails if a server is missing.
func (v *toolsRefreshVerb) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	if len(c.Servers) == 0 {
		return verb.Usage("no server is configured",
			"write airlock.yaml with a key mcpServers, or name a file with --config")
	}
	servers, err := system.OpenCatalog(ctx, c, system.Options{
		Version: verb.Version, Logger: verb.NewLogger(s.Err, false, slog.LevelWarn), Notify: verb.Notices(s.Err),
		Tools: upstreams.AskServers,
	})
	if err != nil {
		return err
	}
	snapshot := servers.Snapshot()
	if err := errors.Join(servers.RequestRefresh(ctx), servers.Close()); err != nil {
		return err
	}
	reports := make([]refreshed, 0, len(snapshot.Servers()))
	for _, server := range snapshot.Servers() {
		reports = append(reports, refreshed{server.ID, len(server.Tools), catalog.Clean(server.Problem)})
	}
	if v.JSON {
		err = verb.PrintLine(s.Out, map[string]any{"servers": reports})
	} else {
		err = printRefreshed(s.Out, reports)
	}
	return errors.Join(err, allThere(snapshot, ""))
}

func printRefreshed(out io.Writer, reports []refreshed) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range reports {
		told := fmt.Sprintf("%d tools", r.Tools)
		if r.Problem != "" {
			told = "missing"
		}
		fmt.Fprintf(table, "%s\t%s\n", r.ServerID, told)
	}
	return table.Flush()
}

// allThere returns an error without a message if a server is missing. The reason has been printed.
func allThere(snapshot *catalog.Snapshot, serverID string) error {
	if len(snapshot.Missing(serverID)) > 0 {
		return verb.ExitError(verb.ExitFailed)
	}
	return nil
}
