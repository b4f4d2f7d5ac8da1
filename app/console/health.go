package console

import (
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// healthSection shows the state of the daemon.
func healthSection() section {
	return section{name: "Health", path: "/health", template: "health", pages: []page{
		{pattern: "GET /health", show: showHealth},
		{pattern: "GET /health/now", show: showHealthNow},
	}}
}

type health struct {
	Status
	Up        time.Duration
	Questions int  // that wait for an answer
	MayKnow   bool // the caller may see why runs cannot be made
	MayLook   bool // the caller may see the configuration
}

func showHealth(c *Console, q *query) (view, error) {
	s := c.opts.Status(q.Context())
	h := health{s, c.opts.Now().Sub(s.Since).Truncate(time.Second), c.opts.Approvals.Open(), q.may(auth.ScopeAudit),
		q.who.May(caller.People, caller.See, configuration)}
	return view{title: "Health", data: h}, nil
}

func showHealthNow(c *Console, q *query) (view, error) {
	v, err := showHealth(c, q)
	v.part = "now"
	return v, err
}
