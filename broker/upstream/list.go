package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits on one server's list. A page is at most maxMessage long.
const (
	maxPages     = 200
	maxListBytes = 64 << 20
	maxCursor    = 64 << 10 // bytes
	minRefresh   = 10 * time.Second
)

// errBadList is wrapped by errors whose text may be shown as it is.
var errBadList = errors.New("its tool list cannot be read")

// listing is a server's whole tool list.
type listing struct {
	tools    []catalog.Tool
	features []catalog.Tool // everything else that the server lists
	warnings []string
	ttl      time.Duration // the list's lifetime set by the server, or 0
}

// page is one answer to tools/list, read loosely.
type page struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor *string           `json:"nextCursor"`
	TTL        json.Number       `json:"ttlMs"`
}

// list reads all pages of a server's tools. A list that loops or does not end is cut, with a
// warning; the items before the cut count.
func (s *session) list(ctx context.Context, serverID string) (listing, error) {
	var (
		items    []json.RawMessage
		result   listing
		excluded []string
		size     int
		cut      string
	)
	seen := map[string]bool{}
	for cursor, pages := "", 1; ; pages++ {
		p, bad, bytes, err := s.page(ctx, cursor)
		if err != nil {
			return listing{}, err
		}
		items, excluded, size = append(items, p.Tools...), append(excluded, bad...), size+bytes
		if ms, err := p.TTL.Int64(); err == nil && ms > 0 && pages == 1 {
			result.ttl = max(time.Duration(min(ms, 24*time.Hour.Milliseconds()))*time.Millisecond, minRefresh)
		}
		if p.NextCursor == nil || *p.NextCursor == "" {
			break
		}
		cursor = *p.NextCursor
		if cut = whyCut(cursor, seen, pages, size); cut != "" {
			break
		}
		seen[cursor] = true
	}
	result.tools, result.warnings = catalog.ParseTools(serverID, items)
	if cut != "" {
		result.warnings = append(result.warnings, "the tool list is cut: "+cut)
	}
	features, more := s.features(ctx, serverID)
	result.features, result.warnings = features, append(result.warnings, more...)
	s.apps(ctx, serverID, &result)
	result = result.without(excluded)
	result.splitApps()
	return result, nil
}

// whyCut returns why no further page is read, or "".
func whyCut(cursor string, seen map[string]bool, pages, size int) string {
	switch {
	case seen[cursor]:
		return fmt.Sprintf("after %d pages the server began again", pages)
	case pages == maxPages:
		return fmt.Sprintf("it has more than %d pages", maxPages)
	case size > maxListBytes:
		return fmt.Sprintf("it is larger than %d bytes", maxListBytes)
	case len(cursor) > maxCursor:
		return fmt.Sprintf("a cursor is longer than %d bytes", maxCursor)
	}
	return ""
}

// page reads one page. excluded are the tools that the SDK refuses to call.
func (s *session) page(ctx context.Context, cursor string) (p page, excluded []string, size int, err error) {
	e := newExchange(nil, nil)
	defer s.tap.forget(e)
	usable, err := s.client.ListTools(withExchange(ctx, e), &mcp.ListToolsParams{Cursor: cursor})
	if err != nil {
		got := e.soFar()
		switch {
		case got.large:
			return page{}, nil, 0, fmt.Errorf("%w: a page is larger than %d bytes", errBadList, maxMessage)
		case got.refusal != nil && got.refusal.Code == jsonrpc.CodeMethodNotFound:
			return page{}, nil, 0, nil // it has no tools, and that is its right
		case got.refusal != nil:
			return page{}, nil, 0, fmt.Errorf("%w: the server refused: %s", errBadList,
				foreignText(got.refusal.Message))
		}
		return page{}, nil, 0, err
	}
	raw := e.soFar().result
	if err := strictjson.UnmarshalOpen(raw, &p); err != nil {
		return page{}, nil, 0, fmt.Errorf("%w: a page does not have the form that MCP requires", errBadList)
	}
	return p, refusedTools(raw, usable), len(raw), nil
}

// refusedTools names the tools of which the SDK saw the definition and did not
// take it.
func refusedTools(raw json.RawMessage, usable *mcp.ListToolsResult) []string {
	taken := map[string]bool{}
	for _, tool := range usable.Tools {
		taken[tool.Name] = true
	}
	var shown mcp.ListToolsResult
	if strictjson.UnmarshalOpen(stub(raw), &shown) != nil {
		return nil
	}
	var refused []string
	for _, tool := range shown.Tools {
		if !taken[tool.Name] {
			refused = append(refused, tool.Name)
		}
	}
	return refused
}

// without leaves out the tools that could be listed but never called.
func (l listing) without(names []string) listing {
	for _, name := range names {
		for i := range l.tools {
			if l.tools[i].Name == name {
				l.tools = append(l.tools[:i], l.tools[i+1:]...)
				l.warnings = append(l.warnings, fmt.Sprintf(
					"tool %q is left out: its x-mcp-header annotations are not allowed", name))
				break
			}
		}
	}
	return l
}
