package policies

import (
	"sync"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// parties contains everything that determines the entities of a request. It is equal for all calls
// of one principal to one tool.
type parties struct {
	principal string
	facts     string // see caller.Facts.Key
	server    string
	tool      string
	read      bool // the tool is a resource or a prompt
	risk      Risk

	trusted, allowed, denied, flagged            bool
	readOnly, destructive, idempotent, openWorld bool // the tool's annotations
}

// partiesOf returns the parties of a request, with the defaults of MCP 2025-11-25 for missing hints.
func partiesOf(req Request, risk Risk) parties {
	a := req.Tool.Annotations
	return parties{
		principal: req.Principal, facts: req.Facts.Key(), server: req.Tool.ServerID, tool: req.Tool.Name,
		read: req.Tool.IsRead(), risk: risk,
		trusted: req.Settings.TrustAnnotations, allowed: req.Settings.Allowed, denied: req.Settings.Denied,
		flagged:  len(req.Settings.Flags) > 0,
		readOnly: hint(a.ReadOnlyHint, false), destructive: hint(a.DestructiveHint, true),
		idempotent: hint(a.IdempotentHint, false), openWorld: hint(a.OpenWorldHint, true),
	}
}

// translated is the Cedar form of parties. It is immutable.
type translated struct {
	principal, action, tool cedar.EntityUID
	entities                cedar.EntityMap
}

// translate returns the Cedar form of the parties. It depends on nothing else; facts are those of p.
func (p parties) translate(facts caller.Facts) *translated {
	id := cedar.String(ToolID(p.server, p.tool))
	t := &translated{
		principal: cedar.NewEntityUID(typeUser, cedar.String(p.principal)),
		action:    cedar.NewEntityUID(typeAction, id),
		tool:      cedar.NewEntityUID(typeTool, id),
	}
	parents := cedar.NewEntityUIDSet(cedar.NewEntityUID(typeAction, anyTool))
	if p.read {
		t.action, parents = cedar.NewEntityUID(typeAction, readAction), cedar.NewEntityUIDSet()
		t.tool = cedar.NewEntityUID(typeResource, id)
	}
	server := cedar.NewEntityUID(typeServer, cedar.String(p.server))
	t.entities = cedar.EntityMap{
		t.principal: userEntity(t.principal, facts),
		t.action:    {UID: t.action, Parents: parents},
		server: {UID: server, Attributes: cedar.NewRecord(cedar.RecordMap{
			"id":      cedar.String(p.server),
			"trusted": cedar.Boolean(p.trusted),
		})},
		t.tool: {UID: t.tool, Parents: cedar.NewEntityUIDSet(server), Attributes: p.toolAttributes()},
	}
	return t
}

func (p parties) toolAttributes() cedar.Record {
	return cedar.NewRecord(cedar.RecordMap{
		"server":  cedar.String(p.server),
		"name":    cedar.String(p.tool),
		"risk":    cedar.String(p.risk.String()),
		"allowed": cedar.Boolean(p.allowed),
		"denied":  cedar.Boolean(p.denied),
		"flagged": cedar.Boolean(p.flagged),
		"claims": cedar.NewRecord(cedar.RecordMap{
			"readOnly":    cedar.Boolean(p.readOnly),
			"destructive": cedar.Boolean(p.destructive),
			"idempotent":  cedar.Boolean(p.idempotent),
			"openWorld":   cedar.Boolean(p.openWorld),
		}),
	})
}

// maxParties limits the size of a partiesCache.
const maxParties = 1024

// partiesCache caches translations, because Cedar hashes the members of a record, which takes
// longer than a decision. It does not cache decisions. It is safe for concurrent use.
type partiesCache struct {
	mu    sync.Mutex // guards known
	known map[parties]*translated
}

func (c *partiesCache) of(p parties, facts caller.Facts) *translated {
	c.mu.Lock()
	known := c.known[p]
	c.mu.Unlock()
	if known != nil {
		return known
	}
	made := p.translate(facts)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxParties {
		c.known = map[parties]*translated{}
	}
	c.known[p] = made
	return made
}
