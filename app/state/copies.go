package state

import (
	"context"
	"errors"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// The kinds of files of runs that are copied.
const (
	kindRecording = "recording"
	kindFiles     = "files"
)

// NewCopies returns the copies of the files of runs in the object store of a cluster. recordings may be nil.
func NewCopies(c *config.Config, db *database.DB, key *agekey.Key, node string, recordings *replay.Store,
	files *attachment.Store, logger *slog.Logger) (*copies.Copies, error) {
	store, err := objects.Open(c.Cluster.Objects)
	if err != nil {
		return nil, err
	}
	kinds := []copies.Kind{{Name: kindFiles, Store: files, Keep: c.Attachments.Keep}}
	if recordings != nil {
		kinds = append(kinds, copies.Kind{Name: kindRecording, Store: recordings, Keep: c.Replay.Keep})
	}
	return copies.New(copies.Options{Database: db, Key: key, Objects: store, Node: node, Kinds: kinds,
		Logger: logger}), nil
}

// withCopies uses the copies of a cluster in a command that does not open a system. Without an object store, it does
// nothing.
func withCopies(ctx context.Context, c *config.Config, use func(*copies.Copies) error) (err error) {
	if c.Cluster.Objects == "" {
		return nil
	}
	d, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	var recordings *replay.Store
	if c.Replay.Keep > 0 {
		if recordings, err = replay.Open(d.Recordings, &replay.Options{Keys: d.Keys, Keep: c.Replay.Keep,
			Size: c.Replay.Size}); err != nil {
			return err
		}
	}
	files, err := attachment.Open(d.Attachments, &attachment.Options{Keys: d.Keys, Keep: c.Attachments.Keep,
		Size: c.Attachments.Size})
	if err != nil {
		return err
	}
	db, key, err := openCluster(ctx, c.Cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all, err := NewCopies(c, db, key, "", recordings, files, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return use(all)
}

// FetchRun stores the recording and the files of a run of another node on this machine, if the cluster has copies.
func FetchRun(ctx context.Context, c *config.Config, run string) error {
	return withCopies(ctx, c, func(all *copies.Copies) error { return all.Fetch(ctx, run) })
}
