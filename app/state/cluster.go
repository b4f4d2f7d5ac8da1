package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
)

// openCluster opens the database of a cluster, with its key.
func openCluster(ctx context.Context, c config.Cluster) (*database.DB, *agekey.Key, error) {
	address, err := read("cluster.database", c.Database)
	if err != nil {
		return nil, nil, err
	}
	key, err := ClusterKey(c.Key)
	if err != nil {
		return nil, nil, err
	}
	db, err := database.OpenPostgreSQL(ctx, secret.New(address), "state", Versions()...)
	if err != nil {
		return nil, nil, err
	}
	if err := cluster.CheckKey(ctx, db, key, key.Recipient().String()); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, key, nil
}

// read returns the secret of a source.
func read(name string, from config.Source) (string, error) {
	scheme, place, _ := strings.Cut(string(from), ":")
	if scheme == "env" {
		if text := strings.TrimSpace(os.Getenv(place)); text != "" {
			return text, nil
		}
		return "", &setup.Error{Err: fmt.Errorf("%s: the variable %s is not set", name, place), Advice: "set it"}
	}
	text, err := store.ReadFile(place)
	if err != nil {
		return "", &setup.Error{Err: fmt.Errorf("%s: %w", name, err), Advice: "docs/cluster.md describes this file"}
	}
	return strings.TrimSpace(string(text)), nil
}

// ClusterKey returns the key of a cluster, which a file or a variable holds.
func ClusterKey(from config.Source) (key *agekey.Key, err error) {
	path, isFile := strings.CutPrefix(string(from), "file:")
	if isFile {
		key, err = agekey.Load(path)
	} else {
		var text string
		if text, err = read("cluster.key", from); err != nil {
			return nil, err
		}
		key, err = agekey.Parse(string(from), []byte(text))
	}
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("cluster.key: %w", err),
			Advice: "make the key once: airlock cluster key FILE; then copy the file to each node"}
	}
	return key, nil
}

// nodeName returns the name of this node; empty without a cluster.
func nodeName(c config.Cluster) (string, error) {
	if c.Database == "" || c.Node != "" {
		return c.Node, nil
	}
	name, err := os.Hostname()
	if err == nil {
		err = cluster.CheckName(name)
	}
	if err != nil {
		return "", &setup.Error{Err: fmt.Errorf("cluster.node: %w", err), Advice: "name this node: cluster.node"}
	}
	return name, nil
}

func errNoCluster() error {
	return &setup.Error{Err: errors.New("this Airlock is not part of a cluster"),
		Advice: "docs/cluster.md describes the key cluster of the configuration"}
}

// Nodes returns the nodes of the configured cluster.
func Nodes(ctx context.Context, c *config.Config) ([]cluster.Member, error) {
	if c.Cluster.Database == "" {
		return nil, errNoCluster()
	}
	db, _, err := openCluster(ctx, c.Cluster)
	if err != nil {
		return nil, err
	}
	all, err := cluster.List(ctx, db)
	return all, errors.Join(err, db.Close())
}

// ProbeObjects stores an object in the object store of a cluster, reads and removes it.
func ProbeObjects(ctx context.Context, c config.Cluster) error {
	store, err := objects.Open(c.Objects)
	if err != nil {
		return err
	}
	name := "probes/" + rand.Text()
	if err = store.Put(ctx, name, []byte(name)); err == nil {
		_, err = store.Get(ctx, name)
	}
	if err = errors.Join(err, store.Delete(ctx, name)); err != nil {
		return &setup.Error{Err: err, Advice: "check cluster.objects, the credentials (AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY) and their rights to get, put, list and delete objects: docs/cluster.md"}
	}
	return nil
}

// join makes this process a node of the cluster.
func (s *State) join(ctx context.Context) error {
	name, err := nodeName(s.cluster)
	if err != nil {
		return err
	}
	s.node, err = cluster.Join(ctx, s.db, cluster.Options{Name: name, Version: s.opts.Version,
		Keys: s.key.Derive("node"), Address: s.cluster.Advertise, Logger: s.opts.Logger})
	if err != nil {
		return err
	}
	s.db = s.db.Fenced(s.node.Fence)
	s.opts.Logger.InfoContext(ctx, "this process is a node of a cluster", slog.String("node", s.node.ID()))
	return nil
}

// AnnouncedCluster returns the name under which the nodes of a cluster announce themselves on a machine. It is empty
// without a cluster.
func AnnouncedCluster(c config.Cluster) (string, error) {
	if c.Database == "" {
		return "", nil
	}
	key, err := ClusterKey(c.Key)
	if err != nil {
		return "", err
	}
	return key.Recipient().String(), nil
}

// WidenCheck is approval.WidenCheck for the state directory home, and also for the cluster of a configuration, whose
// nodes can have other state directories on this machine.
func WidenCheck(c *config.Config, home string) error {
	if err := approval.WidenCheck(home); err != nil {
		return err
	}
	name, err := AnnouncedCluster(c.Cluster)
	if err != nil || name == "" {
		return err
	}
	return approval.WidenCheckCluster(name)
}

// ApartCheck is approval.ApartCheckCluster for the cluster of a configuration. It returns nil without a cluster.
func ApartCheck(c *config.Config) error {
	name, err := AnnouncedCluster(c.Cluster)
	if err != nil || name == "" {
		return err
	}
	return approval.ApartCheckCluster(name)
}
