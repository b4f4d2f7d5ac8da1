package console

import (
	"errors"
	"net/http"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// configurationSection shows a changed configuration that waits for a person, and takes the confirmation.
func configurationSection() section {
	return section{name: "Configuration", path: "/configuration", scope: auth.ScopeAdmin, template: "configuration",
		pages: []page{
			{pattern: "GET /configuration", scope: auth.ScopeAdmin, show: showConfiguration},
			{pattern: "POST /configuration/confirm", scope: auth.ScopeAdmin, show: confirmConfiguration},
		}}
}

type shownConfiguration struct {
	File, Digest string
	Problem      string // why there is nothing to confirm; may be empty
	Done         bool   // the files are confirmed
	Known        bool   // an earlier content was confirmed
	Why          []string
	Lines        []diffLine
	Cut          bool // Lines is not the whole difference, so it cannot be confirmed here
	MayConfirm   bool
}

var errOneConfiguration = &refusal{http.StatusForbidden,
	"You may not do this: the configuration is that of all profiles, and your token is of one.",
	"Sign in with a token that has no profile."}

func showConfiguration(c *Console, q *query) (view, error) {
	if !q.who.May(caller.People, caller.See, configuration) {
		return view{}, errOneConfiguration
	}
	v := view{title: "Configuration"}
	k, err := c.opts.System.Confirmation()
	if err != nil {
		v.data = shownConfiguration{Problem: c.opts.System.Gate().Sentence(err.Error())}
		return v, nil
	}
	shown := shownConfiguration{File: k.After.File, Digest: k.After.Digest(), Done: k.IsDone(), Known: k.IsKnown,
		MayConfirm: rules.MayConfirm(q.who)}
	if !shown.Done {
		shown.Lines = diffLines([]byte(k.Difference()))
		if shown.Cut = len(shown.Lines) > maxDiffLines; shown.Cut {
			shown.Lines = shown.Lines[:maxDiffLines]
		}
		for _, why := range k.Why {
			shown.Why = append(shown.Why, c.opts.System.Gate().Text(why))
		}
	}
	v.data = shown
	return v, nil
}

// confirmConfiguration confirms the content that the page showed.
func confirmConfiguration(c *Console, q *query) (view, error) {
	if !rules.MayConfirm(q.who) {
		return view{}, &refusal{http.StatusForbidden,
			"Only a person who signed in with a link of airlock console may confirm the configuration.",
			"airlock console, or airlock trust"}
	}
	err := c.opts.System.Confirm(q.Context(), q.who, q.PostForm.Get("digest"))
	var advised interface{ Hint() string }
	switch {
	case errors.Is(err, rules.ErrOtherContent):
		return view{}, &refusal{http.StatusConflict, "The page shows another configuration than the files have now.",
			"Open the page again, and read it."}
	case errors.As(err, &advised):
		q.notify("Nothing was confirmed: %s", c.opts.System.Gate().Sentence(err.Error()))
	case err != nil:
		return view{}, err
	default:
		q.notify("The configuration is confirmed.")
	}
	return view{redirect: "/configuration"}, nil
}
