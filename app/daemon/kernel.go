package daemon

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/airlock-mcp/airlock/app/server/kernel"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// kernelPath is the path of the kernel's face.
const kernelPath = "/kernel/mcp"

// openKernel creates the face with the kernel's tools.
func (d *Daemon) openKernel(ctx context.Context) error {
	s := d.opts.System
	k, trust, err := s.OpenKernel(ctx, d.known)
	if err != nil {
		return err
	}
	d.trust = trust
	d.kernel, err = kernel.New(k, kernel.Options{Principal: setup.Principal(), Logger: s.Logger(), Gate: s.Gate(),
		WhileKnown: s.Authority().WhileKnown, Mark: s.Node().Marker(), EndSession: s.Runs().EndSession})
	if err != nil {
		return err
	}
	d.undo.Add(func() error { d.kernel.Close(); return nil })
	return nil
}

// maxKeys is how many keys one answer lists.
const maxKeys = 1000

// agentKeys lists the current signing keys of agents as a JSON Web Key Set (RFC 7517, section
// 5): of one agent (?agent_id=), or of all, in pages (?after= with the last key ID). Keys are
// public, so no credential is needed.
func (d *Daemon) agentKeys(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	keys, err := d.trust.Published(r.Context(), query.Get("agent_id"), query.Get("after"), maxKeys)
	if err != nil {
		d.log.ErrorContext(r.Context(), "the keys of agents could not be read", "error", err)
		w.Header().Set("Retry-After", "1")
		problem.Write(w, http.StatusServiceUnavailable, "unavailable",
			"the keys could not be read: send the request again")
		return
	}
	set := struct {
		Keys []iatp.JWK `json:"keys"`
	}{[]iatp.JWK{}}
	for _, key := range keys {
		set.Keys = append(set.Keys, key.JWK())
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "no-cache") // a revoked key must not survive in a cache
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(set) // an error means that the client has disconnected
}

// agentManifest publishes the manifest and the keys of an agent, for airlock agents pin on
// another machine. If the operator has not made a manifest for the agent, it answers 404.
func (d *Daemon) agentManifest(w http.ResponseWriter, r *http.Request) {
	offer, err := d.trust.PublishedManifest(r.Context(), r.PathValue("agent"))
	if err != nil {
		d.opts.Logger.DebugContext(r.Context(), "a manifest was asked for that is not published", "error", err)
		problem.Write(w, http.StatusNotFound, "not_found", "there is no such manifest")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(offer) // an error means that the client has disconnected
}
