package cli

import (
	"context"
	"errors"
	"os"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// agentTokenVariable makes the host of `airlock mcp` the agent whose token it has.
const agentTokenVariable = "AIRLOCK_AGENT_TOKEN"

// agentHost is who the host is where it is an agent; the zero value: it is the user.
type agentHost struct {
	local server.Local
	known *system.Agents
}

func (a agentHost) close() error {
	if a.known == nil {
		return nil
	}
	return a.known.Close()
}

func errNoAgent() error {
	return &hinted{errors.New(agentTokenVariable + " is no valid token of an agent"), "airlock agents rotate AGENT", ExitUsage}
}

// agentToken returns the token of the agent that the host is; nil where its
// environment has none. It goes no further: no server that is started gets it.
func agentToken() (*secret.Value, error) {
	text, set := os.LookupEnv(agentTokenVariable)
	if !set {
		return nil, nil
	}
	if text == "" { // who sets it means an agent, and never the user
		return nil, errNoAgent()
	}
	token := secret.New(text)
	return &token, os.Unsetenv(agentTokenVariable)
}

// agentIn returns the agent that a token is of; the user for nil. The token is looked
// up again for each request, so that one that was rotated and an agent that was killed
// are known.
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

// agentOf returns who a host is that has the token of an agent.
func agentOf(ctx context.Context, known *system.Agents, token secret.Value, profile string) (server.Local, error) {
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
