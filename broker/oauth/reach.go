package oauth

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// A server names the addresses of its metadata and its authorization server. It must not send Airlock to a place that
// is nearer than the server itself, which only this machine or its network reaches. How far away the server is follows
// from the connections that were made to it, not from its name: the name can resolve to anything for a moment.

// distance returns how far away the server is. kept is the present sign-in, which may be nil.
func (s *Source) distance(kept *record) reach.Distance {
	u, err := url.Parse(s.config.URL)
	if err != nil {
		return reach.Public
	}
	if stated, ok := reach.Stated(u.Hostname()); ok {
		return stated
	}
	if met, ok := s.met.Distance(); ok {
		return met
	}
	return kept.distance()
}

// distance returns how far away the authorization server may be. It was decided when the person signed in.
func (r *record) distance() reach.Distance {
	switch {
	case r == nil:
		return reach.Public
	case r.Distance == nil: // of an older version, which looked the name up
		return reach.Private
	}
	return *r.Distance
}

// newDialer returns the dialer of one wire, which also reaches the issuers that the operator has named.
func (s *Source) newDialer(nearest reach.Distance) *reach.Dialer {
	dialer := &reach.Dialer{Nearest: nearest}
	for _, issuer := range []string{s.config.Issuer, s.target.Issuer, s.config.Provider.Issuer} {
		if u, err := url.Parse(issuer); err == nil && u.Host != "" {
			dialer.Named = append(dialer.Named, u.Hostname())
		}
	}
	return dialer
}

// newTransport returns a transport over the connections of a dialer.
func newTransport(dialer *reach.Dialer) *reach.Transport {
	return reach.NewTransport(dialer, func(t *http.Transport) { t.ResponseHeaderTimeout = httpTimeout })
}

// secure returns an error if credentials may not be sent to a URL. They are sent over https only, except to this
// machine's own addresses.
func secure(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("it is not an address that can be used")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && reach.IsLoopback(u.Hostname()):
		return nil
	}
	return errors.New("it is not an https address")
}
