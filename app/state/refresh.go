package state

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/store"
)

// refreshSignal is the signal of RequestRefresh in a cluster.
const refreshSignal = "refresh"

// RequestRefresh requests every Airlock of this user or this cluster that serves to read the lists of its servers
// again. They do so within seconds.
func (s *State) RequestRefresh(ctx context.Context) error {
	if s.IsShared() {
		db, err := s.Open(ctx)
		if err != nil {
			return err
		}
		return cluster.Signal(ctx, db, refreshSignal)
	}
	path, err := RefreshFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("asking for a refresh: %w", err)
	}
	return store.WriteFile(path, []byte(time.Now().UTC().Format(time.RFC3339Nano)+"\n"), 0o600)
}

// RefreshFile returns the path of the file that RequestRefresh writes. Its modification time is the
// time of the request.
func RefreshFile() (string, error) {
	directory, err := ListsDirectory()
	return filepath.Join(directory, "refresh"), err
}

// LastRefresh identifies the last request of a node to read the lists of tools again. It returns false if it could not
// be read.
func (s *State) LastRefresh(ctx context.Context) (value string, read bool) {
	db, err := s.Open(ctx)
	if err != nil {
		return "", false
	}
	value, err = cluster.LastSignal(ctx, db, refreshSignal)
	return value, err == nil
}

// RefreshRequested returns the time of the last request, or the zero time.
func RefreshRequested() time.Time {
	path, err := RefreshFile()
	if err != nil {
		return time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// ListsDirectory is where tool lists are cached.
func ListsDirectory() (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	return store.Lists(home), nil
}
