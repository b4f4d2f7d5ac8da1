// Package registry is a client of MCP registries (API v0.1, https://registry.modelcontextprotocol.io). A registry is an
// index: it describes packages and addresses, and Airlock turns one of them into an entry of the configuration. The
// tools of a server come from its tools/list, not from the registry.
//
// Everything that a registry answers is untrusted. Answers are bounded, names and versions are compared with those that
// were asked for, and texts are for people only.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of answers.
const (
	maxAnswer = 4 << 20 // bytes of one answer
	maxPages  = 10      // of one search
	pageSize  = 100     // the most that the official registry returns
	waitTime  = 30 * time.Second
)

// ErrNotFound is returned if the registry does not have a server, or not in this version.
var ErrNotFound = errors.New("the registry does not have it")

// ErrToken is returned if the registry requires a token, or another one.
var ErrToken = errors.New("the registry refuses the request")

// Client is the client of one registry. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token secret.Value
	http  *http.Client
}

// New returns the client of the registry at an address of the configuration. token is sent with each request, unless it
// is empty.
func New(address string, token secret.Value) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("the registry %q has no host", address)
	}
	return &Client{base, token, &http.Client{
		Transport: reach.NewTransport(reach.Configured(), func(t *http.Transport) { t.DisableKeepAlives = true }),
		// An address of the operator is not exchanged for one of the registry.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// list is an answer with several servers.
type list struct {
	Servers  []found `json:"servers"`
	Metadata struct {
		NextCursor string `json:"nextCursor"`
	} `json:"metadata"`
}

// found is a server in an answer, with its state in the registry.
type found struct {
	Server Server `json:"server"`
	Meta   struct {
		Official struct {
			Status  string `json:"status"`
			Message string `json:"statusMessage"`
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

// Search returns the newest versions of servers whose names contain text, in the order of the registry. more reports
// whether the registry has others.
func (c *Client) Search(ctx context.Context, text string) (servers []Server, more bool, err error) {
	cursor, seen := "", map[string]bool{}
	for range maxPages {
		query := url.Values{"search": {text}, "version": {"latest"}, "limit": {strconv.Itoa(pageSize)}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page list
		if err := c.get(ctx, query, &page, "servers"); err != nil {
			return nil, false, err
		}
		for _, one := range page.Servers {
			if server, err := one.checked(); err == nil && server.Status != Deleted {
				servers = append(servers, server)
			}
		}
		if cursor = page.Metadata.NextCursor; cursor == "" {
			return servers, false, nil
		}
		if seen[cursor] {
			return nil, false, errors.New("the registry repeats a page")
		}
		seen[cursor] = true
	}
	return servers, true, nil
}

// Get returns one version of a server; latest is the newest one.
func (c *Client) Get(ctx context.Context, name, version string) (Server, error) {
	if !serverName.MatchString(name) || len(name) > maxName {
		return Server{}, fmt.Errorf("%.100q is not the name of a server in a registry, such as io.github.acme/weather",
			name)
	}
	var one found
	if err := c.get(ctx, nil, &one, "servers", name, "versions", version); err != nil {
		return Server{}, err
	}
	server, err := one.checked()
	switch {
	case err != nil:
		return Server{}, err
	case server.Name != name:
		return Server{}, fmt.Errorf("the registry answers with another server, %q", server.Name)
	case version != Latest && server.Version != version:
		return Server{}, fmt.Errorf("the registry answers with another version, %q", server.Version)
	case server.Status == Deleted:
		return Server{}, fmt.Errorf("%w: it was deleted", ErrNotFound)
	}
	return server, nil
}

// get reads the answer to one request.
func (c *Client) get(ctx context.Context, query url.Values, into any, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	for i, part := range path {
		path[i] = url.PathEscape(part)
	}
	address := c.base.String() + "/v0.1/" + strings.Join(path, "/")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if token := c.token.Reveal(); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the registry: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		problem := "it needs a token"
		if c.token.Reveal() != "" {
			problem = "its token is not valid for this"
		}
		return fmt.Errorf("%w with HTTP %d: %s", ErrToken, response.StatusCode, problem)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the registry %s answers with HTTP %d", c.base.Host, response.StatusCode)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer of the registry: %w", err)
	case len(raw) > maxAnswer:
		return fmt.Errorf("the answer of the registry has more than %d bytes", maxAnswer)
	case kind != "application/json" && kind != "application/problem+json":
		return fmt.Errorf("the registry %s answers with something that is not JSON", c.base.Host)
	}
	if err := strictjson.UnmarshalOpen(raw, into); err != nil {
		return fmt.Errorf("reading the answer of the registry: %w", err)
	}
	return nil
}

// Offers returns the ways to use a server, those that can be added first. Addresses are as near as the registry.
func (c *Client) Offers(s Server) []Offer { return s.offers(stated(c.base.Hostname())) }

// The forms of names and versions (schema of server.json, 2025-12-11).
var (
	serverName    = lazyregexp.New(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`)
	serverVersion = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9.+_-]*$`)
)

const (
	maxName    = 200
	maxVersion = 255
)
