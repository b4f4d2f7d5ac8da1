package state

import (
	"fmt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/oauth"
)

// SignIn returns the source of tokens for a server and a principal, which has the form of
// caller.Caller.Name. It is nil if the server has no sign-in. hold is called with each credential.
// The references in the server's configuration must be resolved.
func (s *State) SignIn(server config.Server, principal string, hold func(credential string)) (*oauth.Source, error) {
	if !server.SignsIn() {
		return nil, nil
	}
	named := principal
	if principal == setup.Principal() {
		named = ""
	}
	source, err := oauth.New(OAuthConfig(server), &oauth.Options{
		For:   named,
		Store: s.signIns, Principal: principal, Version: s.opts.Version,
		Hold: func(credential string) {
			credentials.Printed().Hold(credential)
			hold(credential)
		},
	})
	if err != nil {
		return nil, &setup.Error{Err: err,
			Advice: fmt.Sprintf("correct servers.%s.oauth; docs/upstream-sign-in.md shows what each grant needs",
				server.ID)}
	}
	return source, nil
}

// OAuthConfig returns the operator's settings for signing in to a server.
func OAuthConfig(server config.Server) oauth.Config {
	c := oauth.Config{ServerID: server.ID, URL: server.URL}
	o := server.Settings.OAuth
	if o == nil {
		return c
	}
	c.Grant, c.Issuer, c.Scopes, c.RedirectPort, c.DPoP = oauth.Grant(o.Grant), o.Issuer, o.Scopes, o.RedirectPort,
		o.DPoP
	c.Client = oauth.Client{ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientKey: o.ClientKey,
		ClientDocument: o.ClientDocument}
	c.AssertionFile, c.Delegate = o.AssertionFile, o.Delegate
	c.Provider = oauth.Provider{Issuer: o.Provider.Issuer, ClientID: o.Provider.ClientID,
		ClientSecret: o.Provider.ClientSecret, ClientKey: o.Provider.ClientKey}
	return c
}

// SignInState is the state of a sign-in to one server.
type SignInState struct {
	ServerID string
	URL      string
	oauth.State
	Problem string // why the state could not be read
}

// SignInStates returns the states for all servers that are reached by URL and have no
// Authorization header, in order.
func SignInStates(c *config.Config, version string) (list []SignInState, err error) {
	return list, With(c, version, func(s *State) error {
		for _, server := range c.Servers {
			if state, signsIn := s.SignInState(server, setup.Principal()); signsIn {
				list = append(list, state)
			}
		}
		return nil
	})
}

// SignInState returns the state of a principal's sign-in to one server. It returns false
// if the server is not one that is signed in to.
func (s *State) SignInState(server config.Server, principal string) (state SignInState, signsIn bool) {
	source, err := s.SignIn(server, principal, func(string) {})
	if source == nil && err == nil {
		return SignInState{}, false
	}
	state = SignInState{ServerID: server.ID, URL: server.URL}
	if err == nil {
		state.State, err = source.State()
	}
	if err != nil {
		state.Problem = err.Error()
	}
	return state, true
}
