package hosts

import (
	"context"
	"errors"
	"os"

	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// agentTokenVariable is the environment variable with the token of an agent. It makes the host of
// `airlock mcp` that agent.
const agentTokenVariable = "AIRLOCK_AGENT_TOKEN"

// agentHost is the identity of a host that is an agent. The zero value means that the host is the
// user.
type agentHost struct {
	local server.Local
	known *access.Agents
}

func (a agentHost) close() error {
	if a.known == nil {
		return nil
	}
	return a.known.Close()
}

func errNoAgent() error {
	return verb.WithHint(errors.New(agentTokenVariable+" is not a valid token of an agent"),
		"airlock agents rotate AGENT",
		verb.ExitUsage)
}

// agentToken returns the agent's token in the environment, or nil. It removes the token from the
// environment, so that servers do not inherit it.
func agentToken() (*secret.Value, error) {
	text, set := os.LookupEnv(agentTokenVariable)
	if !set {
		return nil, nil
	}
	if text == "" { // a host with an empty variable must not be taken for the user
		return nil, errNoAgent()
	}
	token := secret.New(text)
	return &token, os.Unsetenv(agentTokenVariable)
}

// agentIn returns the agent with this token, or the user if token is nil. The token is looked up
// for each request, so that a rotated token or a killed agent is refused.
func agentIn(ctx context.Context, opened *system.System, token *secret.Value) (agentHost, error) {
	if token == nil {
		return agentHost{}, nil
	}
	known, err := opened.OpenAgents(ctx)
	if err != nil {
		return agentHost{}, err
	}
	local, err := agentOf(ctx, known, *token, opened.Profile())
	if err != nil {
		return agentHost{}, errors.Join(err, known.Close())
	}
	return agentHost{local, known}, nil
}

// agentOf returns a function that authenticates the agent's token for each request. It returns an
// error if the token is not valid now.
func agentOf(ctx context.Context, known *access.Agents, token secret.Value, profile string) (server.Local, error) {
	authenticator := &auth.Authenticator{Tokens: known.Tokens(), Agents: known, Authority: known.Authority()}
	local := func(ctx context.Context) (caller.Caller, error) {
		who, err := authenticator.Agent(ctx, token)
		if err == nil {
			who.Profile, err = auth.Narrower(who.Profile, profile)
		}
		return who, err
	}
	_, err := local(ctx)
	if errors.Is(err, auth.ErrInvalid) {
		err = errNoAgent()
	}
	return local, err
}
