package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Tokens are the verbs of airlock tokens.
type Tokens struct {
	Create tokensCreateVerb `cmd:"" help:"Make a token for callers over HTTP and print it, this once."`
	List   tokensListVerb   `cmd:"" help:"List the tokens; never the secrets."`
	Revoke tokensRevokeVerb `cmd:"" help:"Make a token invalid at once, or all that a person of the issuer has."`
}

// withTokens opens the tokens and the agents and calls do.
func (f agentsFlags) withTokens(ctx context.Context, s *verb.Streams,
	do func(*auth.Tokens, *access.Agents) error) error {
	return f.with(ctx, s, func(a *access.Agents) error { return do(a.Tokens(), a) })
}

type tokensCreateVerb struct {
	agentsFlags
	Name    string        `arg:"" help:"What people call it, such as the host that uses it."`
	For     string        `placeholder:"PRINCIPAL" help:"Whom it identifies, such as you, to share runs, sign-ins and questions; by default a new principal."`
	Scope   []string      `default:"run" sep:"," help:"What it may be used for, separated by commas: run (run code over MCP, and the engines), verify (the engines), agents (register agents and announce their actions), agents:TYPE (the same, for agents of at most that type), approve (answer questions), audit (read the audit log), slash (lower the reputation of agents), admin (all of these, also for what belongs to others)."`
	Profile string        `placeholder:"NAME" help:"What its callers see: a name under profiles in the configuration."`
	Expires time.Duration `default:"2160h" help:"How long it is valid; 0: for ever."`

	Group []string          `sep:"none" placeholder:"NAME" help:"A group that its callers are in, for policies and roles. It can be given several times."`
	Claim map[string]string `placeholder:"NAME=TEXT" help:"A claim about its callers, for policies. It can be given several times."`
	JSON  bool              `name:"json" help:"Print JSON."`
}

// Run creates a token.
func (v *tokensCreateVerb) Run(ctx context.Context, s *verb.Streams) error {
	grant := auth.Grant{Name: v.Name, Principal: v.For, Profile: v.Profile, Scopes: v.Scope}
	if v.Expires < 0 {
		return verb.Usage("--expires must be a duration such as 24h, or 0 for ever",
			"airlock tokens create NAME --expires 24h")
	}
	if v.Expires > 0 {
		grant.Expires = time.Now().Add(v.Expires)
	}
	grant.Facts = auth.FactsOf(v.Group, v.Claim)
	if err := grant.Check(); err != nil {
		return verb.Usage(err.Error(), "airlock tokens create NAME --scope run,agents")
	}
	if v.Profile != "" {
		c, err := v.LoadPlaces()
		if err != nil {
			return err
		}
		if _, err := verb.ProfileName(c, v.Profile); err != nil {
			return err
		}
	}
	if what := v.widens(grant); what != "" {
		if err := v.guarded("making a token " + what); err != nil {
			return err
		}
	}
	return v.with(ctx, s, func(a *access.Agents) error {
		made, value, err := a.CreateToken(ctx, grant, setup.Principal())
		if err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, struct {
				auth.Token
				Value string `json:"token"`
			}{made, value.Reveal()})
		}
		fmt.Fprintln(s.Err, "airlock: keep the token now, it is not shown again")
		_, err = fmt.Fprintln(s.Out, value.Reveal())
		return err
	})
}

// widens returns what gives a token more than commands have that need no person: it can approve, register an agent that
// is trusted further than supervised, or be in a group. It is empty if nothing does.
func (v *tokensCreateVerb) widens(grant auth.Grant) string {
	for _, scope := range v.Scope {
		registers := auth.MayGrant(caller.Caller{Scopes: []string{scope}}, agents.Autonomous) == nil
		if scope == auth.ScopeApprove || registers {
			return "with the scope " + scope
		}
	}
	if !grant.Facts.IsZero() {
		return "with groups or claims"
	}
	return ""
}

type tokensListVerb struct {
	agentsFlags
	verb.PeriodFlags `set:"dated=was created"`
	JSON             bool `name:"json" help:"Print JSON."`
}

// Run lists tokens, newest first.
func (v *tokensListVerb) Run(ctx context.Context, s *verb.Streams) error {
	period, err := v.Period()
	if err != nil {
		return err
	}
	return v.withTokens(ctx, s, func(tokens *auth.Tokens, _ *access.Agents) error {
		list, err := tokens.List(ctx)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(t auth.Token) bool { return !period.Contains(t.Created) })
		if v.JSON {
			return verb.PrintLine(s.Out, map[string]any{"tokens": list})
		}
		if len(list) == 0 && !period.IsZero() {
			_, err := fmt.Fprintln(s.Err, "airlock: no token was created in this time")
			return err
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(s.Err, "airlock: there is no token\nhint: airlock tokens create NAME")
			return err
		}
		return verb.Paged(s, func(w io.Writer) error {
			var t verb.Table
			for _, token := range list {
				state, look := tokenState(token)
				t.Add(verb.Text(token.ID, verb.Plain), verb.Text(state, look),
					verb.Text(strings.Join(token.Scopes, ","), verb.Plain),
					verb.Text(verb.OneLine(token.Principal, 40), verb.Plain),
					verb.Text(verb.OneLine(token.Name, 40), verb.Dim))
			}
			return t.Write(w)
		})
	})
}

func tokenState(t auth.Token) (string, verb.Style) {
	switch {
	case t.Revoked != nil:
		return "revoked", verb.Red
	case t.Expires == nil:
		return "valid for ever", verb.Yellow
	case !t.Expires.After(time.Now()):
		return "expired", verb.Red
	}
	return "until " + t.Expires.Local().Format("2006-01-02 15:04"), verb.Green
}

type tokensRevokeVerb struct {
	agentsFlags
	Token string `arg:"" help:"The ID of a token, as list shows it; or ISSUER#SUBJECT, which ends the sign-ins and access tokens that this person has now."`
}

// Run revokes a token, or signs out a person.
func (v *tokensRevokeVerb) Run(ctx context.Context, s *verb.Streams) error {
	return v.with(ctx, s, func(a *access.Agents) error {
		if issuer, subject, isPerson := strings.Cut(v.Token, "#"); isPerson {
			c, err := v.LoadState(s.Err)
			if err != nil {
				return err
			}
			if issuer != c.Auth.Issuer || subject == "" {
				return verb.Usage(fmt.Sprintf("the issuer of the configuration is %q, so there is no person %q",
					c.Auth.Issuer, v.Token), "airlock tokens revoke ISSUER#SUBJECT")
			}
			return a.SignOut(ctx, v.Token, setup.Principal())
		}
		err := a.RevokeToken(ctx, v.Token, setup.Principal())
		if errors.Is(err, auth.ErrUnknown) {
			return verb.WithHint(err, "airlock tokens list", verb.ExitUsage)
		}
		return err
	})
}
