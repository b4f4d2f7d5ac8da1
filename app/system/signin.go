package system

import (
	"context"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
)

// SignIn returns the source of tokens for a server and a principal, which has the form of
// caller.Caller.Name. It is nil if the server has no sign-in. hold is called with each credential.
// The references in the server's configuration must be resolved.
func SignIn(server config.Server, principal, version string, hold func(credential string)) (*oauth.Source, error) {
	if !server.SignsIn() {
		return nil, nil
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	named := principal
	if principal == Principal() {
		named = ""
	}
	source, err := oauth.New(oauthConfig(server), &oauth.Options{
		For:   named,
		Store: oauth.NewStore(store.SignIns(home), store.Keys(home)), Principal: principal, Version: version,
		Hold: func(credential string) {
			printed.Hold(credential)
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

// oauthConfig returns the operator's settings for signing in to a server.
func oauthConfig(server config.Server) oauth.Config {
	c := oauth.Config{ServerID: server.ID, URL: server.URL}
	o := server.Settings.OAuth
	if o == nil {
		return c
	}
	c.Grant, c.Issuer, c.Scopes, c.RedirectPort, c.DPoP = oauth.Grant(o.Grant), o.Issuer, o.Scopes, o.RedirectPort,
		o.DPoP
	c.Client = oauth.Client{ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientKey: o.ClientKey,
		ClientDocument: o.ClientDocument}
	c.AssertionFile = o.AssertionFile
	c.Provider = oauth.Provider{Issuer: o.Provider.Issuer, ClientID: o.Provider.ClientID,
		ClientSecret: o.Provider.ClientSecret}
	return c
}

// lookUpOAuth resolves the references in the operator's settings for signing in. It changes a copy
// of the settings, which it assigns to the server.
func lookUpOAuth(ctx context.Context, store *secrets.Store, server *config.Server) error {
	if server.Settings.OAuth == nil {
		return nil
	}
	own := *server.Settings.OAuth
	server.Settings.OAuth = &own
	places := own.Secrets()
	values := map[string]secret.Value{}
	for name, place := range places {
		values[name] = *place
	}
	if err := lookUp(ctx, store, values, server); err != nil {
		return err
	}
	for name, place := range places {
		*place = values[name]
	}
	return nil
}
