package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

const (
	idleSessions = 10_000
	ofAccount    = idleSessions / (accounts - 1)
)

// measureIdleSessions opens sessions at one node of two. Each sends one request through the other node, so that both
// know it. The nodes have a server over HTTP.
func measureIdleSessions(ctx context.Context, f *fleet) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	upstream := echoOverHTTP()
	undo.Add(func() error { upstream.Close(); return nil })
	nodes, err := f.nodes(ctx, map[string]any{"sandbox": map[string]any{"pool": 0},
		"mcpServers": map[string]any{"echo": map[string]any{"url": upstream.URL}},
		"servers":    map[string]any{"echo": map[string]any{"trustAnnotations": true}}}, &undo, "idle-a", "idle-b")
	if err != nil {
		return err
	}
	first, err := f.use(ctx, nodes, upstream.URL)
	if err != nil {
		return err
	}
	opening, within := errgroup.WithContext(ctx)
	opening.SetLimit(2 * runtime.NumCPU())
	for i := range idleSessions {
		opening.Go(func() error {
			session, err := nodes[0].session(within, f.tokens[1+i/ofAccount])
			if err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
			if status, err := nodes[1].ping(within, session); err != nil || status != http.StatusOK {
				return fmt.Errorf("session %d at the other node: HTTP %d, %w", i, status, err)
			}
			return nil
		})
	}
	if err := opening.Wait(); err != nil {
		return err
	}
	then, err := f.use(ctx, nodes, upstream.URL)
	if err != nil {
		return err
	}
	for i, name := range []string{"the node that has 10,000 idle sessions", "the node through which each was asked"} {
		f.table.add(newRow("memory of "+name+", PSS", "MB", sample{then[i].memory}).adds(sample{first[i].memory},
			"without sessions"),
			newRow("its connections to PostgreSQL", "", sample{then[i].database}),
			newRow("its connections to the other node", "", sample{then[i].nodes}),
			newRow("its connections to a server over HTTP", "", sample{then[i].upstream}))
	}
	return nil
}

// echoOverHTTP is an MCP server with the tool "echo".
func echoOverHTTP() *httptest.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
			return nil, in, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

// nodeUse is what one node uses: memory in MB, and numbers of connections.
type nodeUse struct{ memory, database, nodes, upstream float64 }

// use reads what nodes use now.
func (f *fleet) use(ctx context.Context, nodes []*serving, upstream string) ([]nodeUse, error) {
	db, err := sql.Open("pgx", f.address)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	server, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	var all []nodeUse
	for _, n := range nodes {
		var u nodeUse
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
			filepath.Base(n.home)).Scan(&u.database); err != nil {
			return nil, err
		}
		mine := n.command.Process.Pid
		memory, err := memoryOf([]int{mine})
		if err != nil {
			return nil, err
		}
		u.memory = memory.proportional
		var ports []string // of other nodes
		rows, err := db.QueryContext(ctx, "SELECT address FROM node WHERE name IN ('idle-a', 'idle-b')")
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var address string
			if err := rows.Scan(&address); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			ports = append(ports, address)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
		if u.nodes, err = connectionsOf(mine, ports...); err != nil {
			return nil, err
		}
		if u.upstream, err = connectionsOf(mine, server.Host); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// connectionsOf counts the established TCP connections of a process over IPv4 whose one end is one of some addresses.
func connectionsOf(pid int, addresses ...string) (float64, error) {
	ports := map[string]bool{}
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return 0, err
		}
		ports[fmt.Sprintf("%04X", n)] = true
	}
	open := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well-formed
	for _, link := range links {
		to, _ := os.Readlink(link) // it may have been closed
		open[to] = true
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return 0, err
	}
	count := 0.
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line) // see proc_net_tcp: 1 and 2 are the addresses, 3 the state, 9 the inode
		if len(fields) < 10 || fields[3] != "01" || !open["socket:["+fields[9]+"]"] {
			continue
		}
		_, local, _ := strings.Cut(fields[1], ":")
		_, remote, _ := strings.Cut(fields[2], ":")
		if ports[local] || ports[remote] {
			count++
		}
	}
	return count, nil
}
