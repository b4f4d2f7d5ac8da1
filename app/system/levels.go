package system

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// watchLevels registers the metrics of current load, until the system is closed.
func (s *System) watchLevels() error {
	stop, err := telemetry.Watch(
		telemetry.Level{Name: "airlock.sandbox.ready", Unit: "{sandbox}", Description: "Sandboxes that wait for work.",
			Read: func() int64 { return int64(s.sandboxes.Load().Ready) }},
		telemetry.Level{Name: "airlock.run.suspended", Unit: "{run}",
			Description: "Runs that wait for people without a sandbox.",
			Read:        func() int64 { return int64(s.runs.Suspended()) }},
		telemetry.Level{Name: "airlock.sandbox.in_use", Unit: "{sandbox}", Description: "Sandboxes that run code.",
			Read: func() int64 { return int64(s.sandboxes.Load().InUse) }},
		telemetry.Level{Name: "airlock.queue.waiting", Unit: "{run}", Description: "Runs that wait for a sandbox.",
			Read: func() int64 { return int64(s.sandboxes.Load().Waiting) }},
		telemetry.Level{Name: "airlock.approval.open", Unit: "{question}",
			Description: "Questions that wait for an answer.",
			Read:        func() int64 { return int64(s.desk.Open()) }},
		telemetry.Level{Name: "airlock.disk.free", Unit: "By", Description: "Free bytes for the state directory.",
			Read: func() int64 { return freeBytes(s.directories.Home) }},
	)
	if err != nil {
		return err
	}
	s.undo.Add(stop)
	stop, err = telemetry.WatchSeries(
		telemetry.Series{Name: "airlock.server.up", Unit: "1", Attribute: telemetry.AttrServer, Read: s.serversUp,
			Description: "Whether a server can be called: 1, or 0."},
		telemetry.Series{Name: "airlock.certificate.expires", Unit: "s", Attribute: telemetry.AttrFile,
			Read: s.certificateEnds, Description: "When the certificate of the daemon expires."},
		telemetry.Series{Name: "airlock.node.up", Unit: "1", Attribute: telemetry.AttrNode, Read: s.nodesUp,
			Description: "Whether another node of the cluster renews its lease: 1, or 0."},
		telemetry.Series{Name: "airlock.node.lease", Unit: "s", Attribute: telemetry.AttrNode, Read: s.lease,
			Description: "How long this node of the cluster may act without its database."},
	)
	if err != nil {
		return err
	}
	s.undo.Add(stop)
	return nil
}

// serversUp returns 1 for each server that can be called, and 0 for the others.
func (s *System) serversUp(context.Context) (map[string]int64, error) {
	up := map[string]int64{}
	snapshot := s.catalog.Snapshot()
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
func (s *System) nodesUp(context.Context) (map[string]int64, error) {
	up := map[string]int64{}
	names, _ := s.Node().Others()
	for _, name := range names {
		up[name] = 1
	}
	for _, name := range s.Node().Silent() {
		up[name] = 0
	}
	return up, nil
}

// lease returns how many seconds this node of the cluster may act without its database.
func (s *System) lease(context.Context) (map[string]int64, error) {
	node := s.Node()
	if node == nil {
		return nil, nil
	}
	return map[string]int64{node.Name(): int64(node.LeaseLeft().Seconds())}, nil
}

// certificateEnds returns when the certificate in the file of serve.certificate expires, in seconds
// since 1970.
func (s *System) certificateEnds(context.Context) (map[string]int64, error) {
	path := s.config.Serve.Certificate
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
