package health

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// WatchLevels registers the metrics of current load, until undo runs.
func (h *Health) WatchLevels(undo *cleanup.Stack) error {
	stop, err := telemetry.Watch(
		telemetry.Level{Name: "airlock.sandbox.ready", Unit: "{sandbox}", Description: "Sandboxes that wait for work.",
			Read: func() int64 { return int64(h.opts.Sandboxes.Load().Ready) }},
		telemetry.Level{Name: "airlock.run.suspended", Unit: "{run}",
			Description: "Runs that wait for people without a sandbox.",
			Read:        func() int64 { return int64(h.opts.Runs.Suspended()) }},
		telemetry.Level{Name: "airlock.sandbox.in_use", Unit: "{sandbox}", Description: "Sandboxes that run code.",
			Read: func() int64 { return int64(h.opts.Sandboxes.Load().InUse) }},
		telemetry.Level{Name: "airlock.queue.waiting", Unit: "{run}", Description: "Runs that wait for a sandbox.",
			Read: func() int64 { return int64(h.opts.Sandboxes.Load().Waiting) }},
		telemetry.Level{Name: "airlock.approval.open", Unit: "{question}",
			Description: "Questions that wait for an answer.",
			Read:        func() int64 { return int64(h.opts.Desk.Open()) }},
		telemetry.Level{Name: "airlock.disk.free", Unit: "By", Description: "Free bytes for the state directory.",
			Read: func() int64 { return freeBytes(h.opts.Home) }},
	)
	if err != nil {
		return err
	}
	undo.Add(stop)
	stop, err = telemetry.WatchSeries(
		telemetry.Series{Name: "airlock.server.up", Unit: "1", Attribute: telemetry.AttrServer, Read: h.serversUp,
			Description: "Whether a server can be called: 1, or 0."},
		telemetry.Series{Name: "airlock.certificate.expires", Unit: "s", Attribute: telemetry.AttrFile,
			Read: h.certificateEnds, Description: "When the certificate of the daemon expires."},
		telemetry.Series{Name: "airlock.node.up", Unit: "1", Attribute: telemetry.AttrNode, Read: h.nodesUp,
			Description: "Whether another node of the cluster renews its lease: 1, or 0."},
		telemetry.Series{Name: "airlock.node.lease", Unit: "s", Attribute: telemetry.AttrNode, Read: h.lease,
			Description: "How long this node of the cluster may act without its database."},
	)
	if err != nil {
		return err
	}
	undo.Add(stop)
	return nil
}

// serversUp returns 1 for each server that can be called, and 0 for the others.
func (h *Health) serversUp(context.Context) (map[string]int64, error) {
	up := map[string]int64{}
	snapshot := h.opts.Catalog.Snapshot()
	if snapshot == nil {
		return up, nil
	}
	for _, server := range snapshot.Servers() {
		up[server.ID] = 0
		if server.Problem == "" && server.Unreachable == "" {
			up[server.ID] = 1
		}
	}
	return up, nil
}

// nodesUp returns 1 for each other node of the cluster that has not ended, and 0 for those that do not renew their
// leases.
func (h *Health) nodesUp(context.Context) (map[string]int64, error) {
	up := map[string]int64{}
	names, _ := h.opts.Node().Others()
	for _, name := range names {
		up[name] = 1
	}
	for _, name := range h.opts.Node().Silent() {
		up[name] = 0
	}
	return up, nil
}

// lease returns how many seconds this node of the cluster may act without its database.
func (h *Health) lease(context.Context) (map[string]int64, error) {
	node := h.opts.Node()
	if node == nil {
		return nil, nil
	}
	return map[string]int64{node.Name(): int64(node.LeaseLeft().Seconds())}, nil
}

// certificateEnds returns when the certificate in the file of serve.certificate expires, in seconds
// since 1970.
func (h *Health) certificateEnds(context.Context) (map[string]int64, error) {
	path := h.opts.Config.Serve.Certificate
	if path == "" {
		return nil, nil
	}
	text, err := store.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("reading the certificate %q: it is not in PEM", path)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %q: %w", path, err)
	}
	return map[string]int64{path: leaf.NotAfter.Unix()}, nil
}

// freeBytes returns how many bytes can be written to the file system of a directory, or 0 if that is
// unknown.
func freeBytes(dir string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return 0
	}
	return int64(stat.Bavail) * stat.Bsize
}
