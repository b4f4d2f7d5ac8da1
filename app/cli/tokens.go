package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/system"
)

type tokensVerbs struct {
	Create tokensCreateVerb `cmd:"" help:"Make a token for callers over HTTP and print it, this once."`
	List   tokensListVerb   `cmd:"" help:"List the tokens; never the secrets."`
	Revoke tokensRevokeVerb `cmd:"" help:"Make a token invalid at once."`
}

// withTokens opens the tokens and the agents and calls do.
func (f agentsFlags) withTokens(ctx context.Context, do func(*auth.Tokens, *system.Agents) error) error {
	return f.with(ctx, func(a *system.Agents) error { return do(a.Tokens(), a) })
}

type tokensCreateVerb struct {
	agentsFlags
	Name    string        `arg:"" help:"What people call it, such as the host that uses it."`
	For     string        `placeholder:"PRINCIPAL" help:"Whom it identifies, such as you, to share runs, sign-ins and questions; by default a principal of its own."`
	Scope   []string      `default:"run" sep:"," help:"What it may be used for: run, agents, approve, audit, admin."`
	Profile string        `placeholder:"NAME" help:"What its callers see: a name under profiles in the configuration."`
	Expires time.Duration `default:"2160h" help:"How long it is valid; 0: for ever."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Run creates a token.
func (v *tokensCreateVerb) Run(ctx context.Context, s *streams) error {
	grant := auth.Grant{Name: v.Name, Principal: v.For, Profile: v.Profile, Scopes: v.Scope}
	if v.Expires < 0 {
		return &usageError{"--expires takes a time from now, or 0 for ever", "airlock tokens create NAME --expires 24h"}
	}
	if v.Expires > 0 {
		grant.Expires = time.Now().Add(v.Expires)
	}
	if err := grant.Check(); err != nil {
		return &usageError{err.Error(), "airlock tokens create NAME --scope run,agents"}
	}
	if v.Profile != "" {
		c, err := v.loadPlaces()
		if err != nil {
			return err
		}
		if _, err := profileName(c, v.Profile); err != nil {
			return err
		}
	}
	for _, scope := range []string{auth.ScopeApprove, auth.ScopeAdmin} {
		if !slices.Contains(v.Scope, scope) {
			continue
		}
		if err := guarded("making a token with the scope " + scope); err != nil {
			return err
		}
	}
	return v.withTokens(ctx, func(tokens *auth.Tokens, a *system.Agents) error {
		whom := cmp.Or(grant.Principal, "a principal of its own")
		if err := a.Record(ctx, "token made for "+whom+" with "+strings.Join(grant.Scopes, " ")); err != nil {
			return err
		}
		made, value, err := tokens.Create(ctx, grant)
		if err != nil {
			return err
		}
		if v.JSON {
			return printLine(s.out, struct {
				auth.Token
				Value string `json:"token"`
			}{made, value.Reveal()})
		}
		fmt.Fprintln(s.err, "airlock: keep the token now, it is not shown again")
		_, err = fmt.Fprintln(s.out, value.Reveal())
		return err
	})
}

type tokensListVerb struct {
	agentsFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists tokens, newest first.
func (v *tokensListVerb) Run(ctx context.Context, s *streams) error {
	return v.withTokens(ctx, func(tokens *auth.Tokens, _ *system.Agents) error {
		list, err := tokens.List(ctx)
		if err != nil {
			return err
		}
		if v.JSON {
			return printLine(s.out, map[string]any{"tokens": list})
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(s.err, "airlock: there is no token\nhint: airlock tokens create NAME")
			return err
		}
		return paged(s, func(w io.Writer) error {
			var t table
			for _, token := range list {
				state, look := tokenState(token)
				t.add(cell{token.ID, plain}, cell{state, look}, cell{strings.Join(token.Scopes, ","), plain},
					cell{oneLine(token.Principal, 40), plain}, cell{oneLine(token.Name, 40), dim})
			}
			return t.write(w)
		})
	})
}

func tokenState(t auth.Token) (string, style) {
	switch {
	case t.Revoked != nil:
		return "revoked", red
	case t.Expires == nil:
		return "valid for ever", yellow
	case !t.Expires.After(time.Now()):
		return "expired", red
	}
	return "until " + t.Expires.Local().Format("2006-01-02 15:04"), green
}

type tokensRevokeVerb struct {
	agentsFlags
	Token string `arg:"" help:"The ID of a token, as list shows it."`
}

// Run revokes a token.
func (v *tokensRevokeVerb) Run(ctx context.Context) error {
	return v.with(ctx, func(a *system.Agents) error {
		err := a.RevokeToken(ctx, v.Token)
		if errors.Is(err, auth.ErrUnknown) {
			return &hinted{err, "airlock tokens list", ExitUsage}
		}
		return err
	})
}
