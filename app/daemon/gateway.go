package daemon

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/server/gateway"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// gatewayPath is the path of the risk gateway's face.
const gatewayPath = "/gateway/mcp"

// Gateway configures the risk gateway.
type Gateway struct {
	Trusted    bool          // run programs that are found safe; otherwise no program runs
	Background time.Duration // the timeout of a job; 0 means the default
	Manifest   string        // the path of a skill's manifest, which must be trusted; may be empty
}

// riskGateway is the face of the risk gateway. It is opened at the first request, because it
// needs an image that may not be built, and keeps sandboxes ready.
type riskGateway struct {
	mu      sync.Mutex
	face    *gateway.Server // nil until it is opened
	handler http.Handler    // of the face; nil until it is opened
}

// gatewayHandler serves the face of the risk gateway to callers with the scope run.
func (d *Daemon) gatewayHandler(opts *server.HTTPOptions) http.Handler {
	return server.Guard(opts.Hosts, opts.Origins, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := d.caller(r); err != nil { // checked before the face is opened
			d.refuse(w, r, err)
			return
		}
		handler, err := d.openGateway(r.Context(), opts)
		if err != nil {
			d.noGateway(w, r, err)
			return
		}
		handler.ServeHTTP(w, r)
	}))
}

// openGateway opens the face unless it is open.
func (d *Daemon) openGateway(ctx context.Context, opts *server.HTTPOptions) (http.Handler, error) {
	d.gateway.mu.Lock()
	defer d.gateway.mu.Unlock()
	if d.gateway.handler != nil {
		return d.gateway.handler, nil
	}
	if d.draining.Load() {
		return nil, errEnding
	}
	// The face outlives the request that opens it.
	face, err := d.newGateway(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	d.gateway.face, d.gateway.handler = face, face.Handler(d.caller, opts)
	return d.gateway.handler, nil
}

var errEnding = errors.New("the daemon is ending")

func (d *Daemon) newGateway(ctx context.Context) (*gateway.Server, error) {
	s, set := d.opts.System, d.opts.Gateway
	if set.Manifest != "" {
		if err := s.Verify().CheckSkill(ctx, set.Manifest); err != nil {
			return nil, err
		}
	}
	parts, err := s.OpenGateway(ctx, set.Trusted)
	if err != nil {
		return nil, err
	}
	return gateway.New(gateway.Parts{Decider: parts.Decider, Runs: s.Runs(), Jobs: parts.Jobs}, gateway.Options{
		Version: d.opts.Version, Principal: setup.Principal(), BackgroundTimeout: set.Background, Logger: s.Logger(),
		Gate: s.Gate(), WhileKnown: s.Authority().WhileKnown, Mark: s.Node().Marker(),
	})
}

// closeGateway ends the face's sessions. It may be called twice.
func (d *Daemon) closeGateway() {
	d.gateway.mu.Lock()
	face := d.gateway.face
	d.gateway.mu.Unlock()
	if face != nil {
		face.Close()
	}
}

// noGateway answers that the face is unavailable, and logs why. The answer includes the hint
// for the operator, unless a manifest is configured and the hint could reveal paths.
func (d *Daemon) noGateway(w http.ResponseWriter, r *http.Request, err error) {
	var advised interface{ Hint() string }
	message := "the risk gateway cannot be used now; the server's log shows why"
	switch {
	case errors.Is(err, errEnding):
		message = "the server is ending: send it again"
		w.Header().Set("Retry-After", "1")
	case errors.As(err, &advised) && d.opts.Gateway.Manifest == "":
		message = "the risk gateway cannot be used now: " + advised.Hint()
	}
	d.log.ErrorContext(r.Context(), "the risk gateway could not be opened", "error", err)
	problem.Write(w, http.StatusServiceUnavailable, "unavailable", message)
}
