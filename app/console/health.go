package console

import "time"

// healthSection is how the daemon is.
func healthSection() section {
	return section{name: "Health", path: "/health", template: "health", pages: []page{
		{pattern: "GET /health", show: showHealth},
		{pattern: "GET /health/now", show: showHealthNow},
	}}
}

type health struct {
	Status
	Up        time.Duration
	Questions int // that wait for an answer
}

func showHealth(c *Console, q *query) (view, error) {
	s := c.opts.Status(q.Context())
	return view{title: "Health", data: health{s, c.opts.Now().Sub(s.Since).Truncate(time.Second), c.opts.Approvals.Open()}}, nil
}

func showHealthNow(c *Console, q *query) (view, error) {
	v, err := showHealth(c, q)
	v.part = "now"
	return v, err
}
