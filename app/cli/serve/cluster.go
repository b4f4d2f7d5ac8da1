package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// Cluster are the verbs of airlock cluster.
type Cluster struct {
	Key       clusterKey       `cmd:"" help:"Make the key of a cluster, once; each node gets a copy of the file."`
	Reencrypt clusterReencrypt `cmd:"" help:"Encrypt what is stored with the first key in the file of cluster.key."`
}

type clusterKey struct {
	File string `arg:"" help:"The new file."`
}

// Run makes the key in a new file that only its owner can read.
func (v *clusterKey) Run(s *verb.Streams) error {
	path, err := filepath.Abs(v.File)
	if err != nil {
		return err
	}
	_, err = agekey.Create(path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return verb.Usage(fmt.Sprintf("%q exists already", v.File), "airlock cluster key takes the name of a new file")
	case err != nil:
		return verb.WithHint(fmt.Errorf("making the key of a cluster: %w", err), "name a file in an existing directory",
			verb.ExitFailed)
	}
	_, err = fmt.Fprintf(s.Out, "cluster.key: {from: \"file:%s\"}\n", path)
	return err
}

type clusterReencrypt struct {
	verb.AuditFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run encrypts what the cluster has stored with its new key.
func (v *clusterReencrypt) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	if err := verb.GuardedIn(c, "encrypting what the cluster has stored"); err != nil {
		return err
	}
	did, err := state.ReencryptCluster(ctx, c)
	if err != nil {
		return err
	}
	if v.JSON {
		return verb.PrintLine(s.Out, did)
	}
	if did.Unreadable > 0 {
		fmt.Fprintf(s.Err, "airlock: %d objects in the object store were left as they are: no line of cluster.key "+
			"decrypts them\n", did.Unreadable)
	}
	_, err = fmt.Fprintf(s.Out, "encrypted again: %d values\n", did.Changed)
	return err
}

// printNodes prints the nodes of the configured cluster.
func printNodes(ctx context.Context, s *verb.Streams, f verb.ConfigFlag, asJSON bool) error {
	c, err := f.Load(s.Err)
	if err != nil {
		return err
	}
	nodes, err := state.Nodes(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		return verb.PrintLine(s.Out, map[string][]cluster.Member{"nodes": nodes})
	}
	var table verb.Table
	table.Add(verb.Text("NODE", verb.Bold), verb.Text("STATE", verb.Bold), verb.Text("EPOCH", verb.Bold),
		verb.Text("VERSION", verb.Bold), verb.Text("SANDBOXES", verb.Bold), verb.Text("STARTED", verb.Bold),
		verb.Text("HEARTBEAT", verb.Bold))
	for _, n := range nodes {
		heartbeat := "-"
		if !n.Heartbeat.IsZero() {
			heartbeat = n.Heartbeat.Format(time.RFC3339)
		}
		table.Add(verb.Text(n.Name, verb.Plain), verb.Text(n.State, verb.Plain),
			verb.Text(strconv.FormatInt(n.Epoch, 10), verb.Plain), verb.Text(n.Version, verb.Plain),
			verb.Text(fmt.Sprintf("%d of %d", n.Load.Busy, n.Load.Sandboxes), verb.Plain),
			verb.Text(n.Started.Format(time.RFC3339), verb.Plain), verb.Text(heartbeat, verb.Plain))
	}
	return table.Write(s.Out)
}
