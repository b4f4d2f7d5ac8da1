package testenv

import "net/http"

// Bearer returns a client that sends a token with each request.
func Bearer(token string) *http.Client { return &http.Client{Transport: bearer(token)} }

type bearer string

// RoundTrip sends a request with the token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
