package contained

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// The limits of the connections of a server, which lasts much longer than a run.
var limits = egress.Limits{Open: 64, Total: 1_000_000, Bytes: 100 << 30}

// gate decides about the connections of a server. Each start of a server has one.
type gate struct {
	servers *Servers
	id      string // of the server
	calls   atomic.Pointer[broker.RunCalls]
	state   *state
}

var _ egress.Gate = (*gate)(nil)

// connect gives a server with hosts a network.
func (l *launcher) connect(p *program, request *runner.Request) error {
	p.log = l.servers.opts.Logger
	hosts := l.server.Settings.Sandbox.Network
	trial := l.servers.onTrial(l.server.ID)
	if len(hosts) == 0 && !trial {
		return nil
	}
	roots, err := l.servers.opts.Roots()
	if err != nil {
		return err
	}
	ours, theirs, err := egress.Pair()
	if err != nil {
		return err
	}
	g := &gate{servers: l.servers, id: l.server.ID, state: l.servers.state(l.server.ID)}
	p.undo.Add(g.close)
	network, err := egress.New(ours, &egress.Options{Hosts: hosts, Any: trial, Gate: g, Dial: l.servers.opts.Dial,
		Limits: limits})
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	p.undo.Add(network.Close)
	request.Network = &runner.Network{Device: theirs, Closed: network.Closed(), Open: network.Open}
	request.Mounts = append(request.Mounts, runner.Mount{Source: roots, Target: runner.TrustDir})
	certificates := runner.TrustDir + "/cert.pem"
	if _, err := os.Stat(filepath.Join(roots, "cert.pem")); err == nil {
		request.Image.Env = append(request.Image.Env, "SSL_CERT_FILE="+certificates,
			"NODE_EXTRA_CA_CERTS="+certificates)
	}
	return nil
}

// Connect has the broker decide about a connection.
func (g *gate) Connect(ctx context.Context, host egress.Host) (func(egress.Outcome), error) {
	calls, err := g.open()
	if err != nil {
		g.state.refused(host, err.Error())
		return nil, err
	}
	done, err := calls.Connect(ctx, host)
	if err != nil {
		g.state.refused(host, err.Error())
		return nil, err
	}
	g.state.permitted(host)
	return func(o egress.Outcome) {
		g.state.reached(host, o)
		done(o)
	}, nil
}

// open returns the calls of which the server's connections are part.
func (g *gate) open() (*broker.RunCalls, error) {
	if calls := g.calls.Load(); calls != nil {
		return calls, nil
	}
	b := g.servers.broker.Load()
	if b == nil {
		return nil, &egress.Refusal{Reason: "connections are decided only while Airlock serves"}
	}
	empty, err := catalog.NewSnapshot(nil)
	if err != nil {
		return nil, err
	}
	made, err := b.Open(broker.Run{ID: telemetry.NewID("srv"),
		Caller: caller.Caller{Principal: g.id, Kind: caller.Contained}}, empty, nil)
	if err != nil {
		return nil, err
	}
	if !g.calls.CompareAndSwap(nil, made) {
		made.Close()
	}
	return g.calls.Load(), nil
}

func (g *gate) close() error {
	if calls := g.calls.Load(); calls != nil {
		calls.Close()
	}
	return nil
}
