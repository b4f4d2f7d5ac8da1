package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// told contains the suite's instructions for the client.
type told struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientKey    string `json:"private_key_pem"`
	Issuer       string `json:"issuer"`
	WorkloadJWT  string `json:"valid_jwt"`
	IDToken      string `json:"idp_id_token"`
	IDPClientID  string `json:"idp_client_id"`
	IDPIssuer    string `json:"idp_issuer"`
}

// configuration is what an operator would write for the scenario.
func configuration(url, directory string) (oauth.Config, error) {
	var t told
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			return oauth.Config{}, fmt.Errorf("reading MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	config := oauth.Config{ServerID: serverID, URL: url, Issuer: t.Issuer, Client: oauth.Client{
		ClientID: t.ClientID, ClientSecret: secret.New(t.ClientSecret), ClientKey: secret.New(t.ClientKey),
		ClientDocument: "https://conformance-test.local/client-metadata.json",
	}}
	assertion := t.WorkloadJWT + t.IDToken
	switch {
	case t.WorkloadJWT != "":
		config.Grant = oauth.JWTBearer
	case t.IDToken != "":
		config.Grant = oauth.Enterprise
		config.Provider = oauth.Provider{Issuer: t.IDPIssuer, ClientID: t.IDPClientID}
	case t.ClientID != "" && t.Issuer == "":
		config.Grant = oauth.ClientCredentials
	}
	if assertion != "" {
		config.AssertionFile = filepath.Join(directory, "assertion")
		return config, os.WriteFile(config.AssertionFile, []byte(assertion), 0o600)
	}
	return config, nil
}

// signIn connects, signs in whenever the server wants that, as often as a patient person
// would, and calls the tools.
func signIn(ctx context.Context, url string) (err error) {
	directory, err := os.MkdirTemp("", "airlock-conformance-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	config, err := configuration(url, directory)
	if err != nil {
		return err
	}
	source, err := oauth.New(
		config, &oauth.Options{Principal: "user:test"})
	if err != nil {
		return err
	}
	set, err := upstream.New([]upstream.Config{{ID: serverID, URL: url, Credentials: source}},
		&upstream.Options{Version: "test"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for range 2 {
		if err = use(ctx, set); !needsPerson(err) {
			return err
		}
		if _, err := source.Login(ctx, browser{}, nil); err != nil {
			return err
		}
	}
	return use(ctx, set)
}

// use lists the tools and calls them.
func use(ctx context.Context, set *upstream.Set) error {
	if err := set.Refresh(ctx, serverID); err != nil {
		return err
	}
	for _, tool := range set.Servers()[0].Tools {
		if _, err := set.Call(ctx, serverID, tool.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

func needsPerson(err error) bool {
	var needed *upstream.SignInError
	return errors.As(err, &needed) && needed.Command != ""
}

// browser is a person who consents to everything, with a browser that follows redirects.
type browser struct{}

// Invite implements oauth.Person.
func (browser) Invite(ctx context.Context, i oauth.Invitation) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Paste implements oauth.Person.
func (browser) Paste(context.Context) (string, error) {
	return "", errors.New("the browser answers by itself")
}

// OwnsBrowser implements oauth.Person.
func (browser) OwnsBrowser() bool { return true }

// Show implements oauth.Person.
func (browser) Show(oauth.SignedIn) {}

// Strange implements oauth.Person.
func (browser) Strange() {}
