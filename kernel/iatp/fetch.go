package iatp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of fetched manifests.
const (
	MaxPinned = 1 << 20 // bytes of a manifest with its keys
	fetchTime = 30 * time.Second
)

// ManifestPath is the path prefix under which a daemon publishes the result of Offer, by agent ID.
const ManifestPath = "/.well-known/agent-manifest/"

// Fetch downloads an agent's manifest from an address of its operator, for Pin. The address must
// use https, or http on this machine. Redirects are not followed. The error is a *Refusal if the
// address or the response is invalid.
func Fetch(ctx context.Context, address string) (Pinned, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || !reach.IsLoopback(u.Hostname())) {
		return Pinned{}, &Refusal{"the address of a manifest begins with https:// and has no credential in it"}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Pinned{}, err
	}
	req.Header.Set("Accept", "application/json")
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     reach.NewTransport(reach.Configured(), func(t *http.Transport) { t.DisableKeepAlives = true }),
	}
	res, err := client.Do(req)
	if err != nil {
		return Pinned{}, fmt.Errorf("fetching the manifest: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return Pinned{}, &Refusal{fmt.Sprintf("%s answers with HTTP %d in place of a manifest", u.Host, res.StatusCode)}
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	raw, err := io.ReadAll(io.LimitReader(res.Body, MaxPinned+1))
	if err != nil {
		return Pinned{}, fmt.Errorf("fetching the manifest: %w", err)
	}
	var p Pinned
	if kind != "application/json" || len(raw) > MaxPinned || strictjson.UnmarshalOpen(raw, &p) != nil {
		return Pinned{}, &Refusal{u.Host + " answers with something that is not a manifest"}
	}
	return p, nil
}
