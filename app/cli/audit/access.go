package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/audit"
)

type auditAccessVerb struct {
	verb.ConfigFlag
	verb.PeriodFlags `set:"dated=was created"`
	Unused           string `placeholder:"TIME" help:"Only what was not used since then: 30d, or 2026-10-01."`
	Principal        string `placeholder:"NAME" help:"Only what this principal has."`
	JSON             bool   `name:"json" help:"Print JSON."`
}

// Run prints who can do what now.
func (v *auditAccessVerb) Run(ctx context.Context, s *verb.Streams) error {
	var since time.Time
	if v.Unused != "" {
		var err error
		if since, err = audit.ParseTime(v.Unused, time.Now()); err != nil {
			return verb.Usage(err.Error(), "airlock audit access --unused 30d")
		}
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	c, err := v.LoadState(s.Err)
	if err != nil {
		return err
	}
	var all []access.Access
	err = access.With(ctx, c, verb.Version, func(a *access.Agents) (err error) {
		all, err = a.Access(ctx)
		return err
	})
	all = slices.DeleteFunc(all, func(one access.Access) bool {
		return v.Principal != "" && one.Principal != v.Principal || !since.IsZero() && !one.IsUnusedSince(since) ||
			!period.Contains(one.Created)
	})
	if len(all) > 0 || err == nil {
		err = errors.Join(err, v.print(s, all))
	}
	return err
}

func (v *auditAccessVerb) print(s *verb.Streams, all []access.Access) error {
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"access": append([]access.Access{}, all...)})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(s.Err, "airlock: no token, agent or sign-in matches")
		return err
	}
	return verb.Paged(s, func(w io.Writer) error {
		var t verb.Table
		for _, one := range all {
			used, look := "never used", verb.Yellow
			if one.Used != nil {
				used, look = "used "+one.Used.Format(time.DateOnly), verb.Plain
			}
			expires := "no end"
			if one.Expires != nil {
				expires = "until " + one.Expires.Format(time.DateOnly)
			}
			t.Add(verb.Text(verb.OneLine(one.Principal, 40), verb.Plain), verb.Text(one.Kind, verb.Dim),
				verb.Text(verb.OneLine(one.ID, 40), verb.Plain),
				verb.Text(verb.OneLine(strings.Join(one.Rights, ","), 60), verb.Plain),
				verb.Text("from "+one.Created.Format(time.DateOnly), verb.Dim), verb.Text(used, look),
				verb.Text(expires, verb.Dim), verb.Text(verb.OneLine(one.Name, 40), verb.Dim))
		}
		return t.Write(w)
	})
}
