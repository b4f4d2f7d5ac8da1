package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/runner"
)

// maxRefusals is the number of refused connections that the error of a run names.
const maxRefusals = 3

// network is the network of a run. Its methods do nothing on nil, for a run without a network.
type network struct {
	*egress.Network
	theirs *os.File                        // the sandbox's end of the device
	calls  atomic.Pointer[broker.RunCalls] // set before the code runs
}

var _ egress.Gate = (*network)(nil)

// Connect has the broker decide about a connection of the code.
func (n *network) Connect(ctx context.Context, host egress.Host) (func(egress.Outcome), error) {
	calls := n.calls.Load()
	if calls == nil {
		return nil, &egress.Refusal{Reason: "the run has not started"}
	}
	return calls.Connect(ctx, host)
}

// Hosts returns the hosts that a request asks for. Each of them must be listed. The error is an *InputError.
func (r Request) Hosts(listed []egress.Host) ([]egress.Host, error) {
	hosts := make([]egress.Host, 0, len(r.Network))
	for _, text := range r.Network {
		host, err := egress.ParseHost(text)
		if err != nil {
			return nil, &InputError{"network: " + err.Error(), "give names and ports, such as api.github.com:443"}
		}
		if !slices.Contains(listed, host) {
			return nil, &InputError{fmt.Sprintf("network: no run may ask for %s", host), describeListed(listed)}
		}
		hosts = append(hosts, host)
	}
	if len(hosts) > 0 && (r.Script != nil || r.Call != nil) {
		return nil, &InputError{"network: scripts and single calls have no network", "run the code with run_code"}
	}
	return hosts, nil
}

// listed returns the hosts that a request may ask for.
func (o *Orchestrator) listed(req Request) []egress.Host {
	if o.opts.Network == nil {
		return nil
	}
	return o.opts.Network(req.Caller)
}

func describeListed(listed []egress.Host) string {
	if len(listed) == 0 {
		return "call tools through the wrappers; an operator can list hosts in sandbox.network and permit them by " +
			"policy"
	}
	texts := make([]string, len(listed))
	for i, host := range listed {
		texts[i] = host.String()
	}
	return "runs may ask for " + strings.Join(texts, ", ")
}

// openNetwork returns the network of a run, or nil if the request asks for no host. The caller must close it.
func (o *Orchestrator) openNetwork(req Request) (*network, error) {
	hosts, err := req.Hosts(o.listed(req))
	if err != nil || len(hosts) == 0 {
		return nil, err
	}
	ours, theirs, err := egress.Pair()
	if err != nil {
		return nil, err
	}
	n := &network{theirs: theirs}
	dial := o.opts.Dial
	if dial == nil {
		dial = (&reach.Dialer{}).DialContext
	}
	n.Network, err = egress.New(ours, &egress.Options{Hosts: hosts, Gate: n, Dial: dial})
	if err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	return n, nil
}

// connect adds the network to the request for a sandbox.
func (o *Orchestrator) connect(wanted *runner.Request, n *network) {
	if n == nil {
		return
	}
	wanted.Network = &runner.Network{Device: n.theirs, Closed: n.Closed(), Open: n.Open}
	if o.opts.Roots != "" {
		wanted.Mounts = append(wanted.Mounts, runner.Mount{Source: o.opts.Roots, Target: runner.TrustDir})
	}
}

// started is called when the sandbox has its own descriptor of the device, or none will need it.
func (n *network) started() {
	if n != nil {
		_ = n.theirs.Close() // a socket that nobody has written to
	}
}

// begin has calls decide about connections.
func (n *network) begin(calls *broker.RunCalls) {
	if n != nil {
		n.calls.Store(calls)
	}
}

// close ends all connections and records their outcomes.
func (n *network) close() error {
	if n == nil {
		return nil
	}
	return n.Network.Close()
}

// explain adds the refused connections to the message of a failed run, or to the note of another one, whose code may
// have caught the errors.
func (n *network) explain(message string) string {
	if n == nil {
		return message
	}
	refusals := n.Refusals()
	if len(refusals) == 0 {
		return message
	}
	refused := "network: " + strings.Join(refusals[:min(len(refusals), maxRefusals)], "; ")
	if message == "" {
		return refused
	}
	return message + " (" + refused + ")"
}
