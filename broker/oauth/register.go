package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// register chooses the client that Airlock is at an authorization server (MCP, Client
// Registration Approaches): the configured client; else a client-id metadata document, if
// both sides support it; else an earlier registration; else a new one (RFC 7591).
func (w *wire) register(ctx context.Context, config Config, at serverMetadata, redirect string, kept registration,
	now time.Time) (registration, error) {
	hasSecret, hasKey := config.ClientSecret.Reveal() != "", config.ClientKey.Reveal() != ""
	switch {
	case config.ClientID != "":
		return registration{
			Issuer: at.Issuer, ID: config.ClientID, Secret: config.ClientSecret.Reveal(), Redirect: redirect,
			Method: methodFor(at.AuthMethods, hasSecret, hasKey),
		}, nil
	case config.ClientDocument != "" && at.TakesDocuments:
		return registration{Issuer: at.Issuer, ID: config.ClientDocument,
			Method: methodFor(at.AuthMethods, false, hasKey), Redirect: redirect}, nil
	case kept.Registered && kept.Issuer == at.Issuer && kept.Redirect == redirect &&
		(kept.Expires.IsZero() || now.Before(kept.Expires)):
		return kept, nil
	case at.Registration == "":
		return registration{},
			fmt.Errorf("the authorization server %s registers no clients by itself: register Airlock there, and "+
				"write its client ID as servers.%s.oauth.clientId", plain(at.Issuer), config.ServerID)
	}
	return w.newRegistration(ctx, at, redirect)
}

// registered is an answer of the registration endpoint (RFC 7591, section 3.2.1).
type registered struct {
	ID      string `json:"client_id"`
	Secret  string `json:"client_secret"`
	Expires int64  `json:"client_secret_expires_at"`
	Method  string `json:"token_endpoint_auth_method"`
}

func (w *wire) newRegistration(ctx context.Context, at serverMetadata, redirect string) (registration, error) {
	method := authNone
	if len(at.AuthMethods) > 0 && !slices.Contains(at.AuthMethods, authNone) {
		method = methodFor(at.AuthMethods, true, false)
	}
	kind := "native"
	if strings.HasPrefix(redirect, "https:") { // of a Receiver
		kind = "web"
	}
	body, err := json.Marshal(map[string]any{
		"client_name": "Airlock", "application_type": kind, "redirect_uris": []string{redirect},
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": method,
	})
	if err != nil {
		return registration{}, err
	}
	status, _, answer, err := w.postBody(ctx, at.Registration, "application/json", body, http.Header{})
	if err != nil {
		return registration{}, fmt.Errorf("registering Airlock: %w", err)
	}
	var got registered
	switch {
	case status != http.StatusCreated && status != http.StatusOK:
		refused := &refusal{status: status}
		strictjson.UnmarshalOpen(answer, refused) // an unreadable answer has no code
		return registration{}, fmt.Errorf("registering Airlock: %w", refused)
	case strictjson.UnmarshalOpen(answer, &got) != nil || got.ID == "":
		return registration{}, errors.New("registering Airlock: the authorization server answered without a client ID")
	}
	if got.Method == "" {
		got.Method = method
	}
	if got.Method != authNone && got.Secret == "" ||
		!slices.Contains([]string{authNone, authBasic, authPost}, got.Method) {
		return registration{},
			fmt.Errorf("registering Airlock: the authorization server chose the method %s, which Airlock was given "+
				"no secret for", quote(got.Method))
	}
	r := registration{Issuer: at.Issuer, ID: got.ID, Secret: got.Secret, Method: got.Method, Redirect: redirect,
		Registered: true}
	if got.Expires > 0 {
		r.Expires = time.Unix(got.Expires, 0)
	}
	return r, nil
}
