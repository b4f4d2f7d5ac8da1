package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

func open(t *testing.T) *database.DB {
	t.Helper()
	db, err := database.OpenPostgreSQL(t.Context(), secret.New(databasetest.Schema(t)), "state", cluster.Schema,
		cluster.SchemaAddresses, cluster.SchemaValues, cluster.SchemaMoves, cluster.SchemaLoads, cluster.SchemaHomes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func options(name string) cluster.Options {
	return cluster.Options{Name: name, Version: "1",
		Keys: cluster.Keys{[]byte("a key of the cluster")}, Address: "127.0.0.1:0",
		Logger: slog.New(slog.DiscardHandler)}
}

func join(t *testing.T, db *database.DB, name string) *cluster.Node {
	t.Helper()
	n, err := cluster.Join(t.Context(), db, options(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// silence has the database forget the heartbeats of a node for a time.
func silence(t *testing.T, db *database.DB, name string, seconds int) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE node SET heartbeat = heartbeat - ? WHERE name = ?", seconds, name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func act(t *testing.T, n *cluster.Node, db *database.DB) error {
	t.Helper()
	return db.Fenced(n.Fence).Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), "INSERT INTO cluster_setting VALUES ('act', ?) ON CONFLICT (name) DO "+
			"UPDATE SET value = excluded.value", n.ID())
		return err
	})
}

// issue 28: the transactions of a node that was replaced, or whose lease has ended, store nothing.
func TestAReplacedNodeStoresNothing(t *testing.T) {
	db := open(t)
	first := join(t, db, "a")
	if err := act(t, first, db); err != nil {
		t.Fatal(err)
	}
	err := db.Update(t.Context(), func(tx database.Tx) error { // a heartbeat cannot come between
		if _, err := tx.ExecContext(t.Context(), "UPDATE node SET heartbeat = heartbeat - 31"); err != nil {
			return err
		}
		return first.Fence(t.Context(), tx)
	})
	if !errors.Is(err, cluster.ErrLapsed) {
		t.Errorf("after the end of the lease: %v", err)
	}
	var second *cluster.Node
	for second == nil { // a heartbeat of the first may come between
		silence(t, db, "a", 31)
		var alive *cluster.SetupError
		second, err = cluster.Join(t.Context(), db, options("a"))
		if err != nil && !errors.As(err, &alive) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = second.Close() })
	if err := act(t, first, db); !errors.Is(err, cluster.ErrLapsed) && !errors.Is(err, cluster.ErrReplaced) {
		t.Errorf("after it was replaced: %v", err)
	}
	<-first.Lost()
	if err := first.Check(); !errors.Is(err, cluster.ErrReplaced) {
		t.Errorf("it learned %v", err)
	}
	if err := act(t, second, db); err != nil || second.ID() != "a/2" {
		t.Errorf("the new node %s: %v", second.ID(), err)
	}
}

func TestTwoLivingNodesHaveTwoNames(t *testing.T) {
	db := open(t)
	a := join(t, db, "a")
	var setup *cluster.SetupError
	_, err := cluster.Join(t.Context(), db, options("a"))
	if !errors.As(err, &setup) || !strings.Contains(setup.Hint(), "cluster.node") {
		t.Errorf("a second node a: %v", err)
	}
	join(t, db, "b")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	nodes, err := cluster.List(t.Context(), db)
	if err != nil || len(nodes) != 2 || nodes[0].State != cluster.Ended || nodes[1].State != cluster.Alive {
		t.Errorf("nodes %v (%v), want a that has ended and b that is alive", nodes, err)
	}
	for err == nil && nodes[1].State != cluster.Silent { // a heartbeat may come between
		silence(t, db, "b", 15)
		nodes, err = cluster.List(t.Context(), db)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAnUpdateOfNoClusterIsNotFenced(t *testing.T) {
	var none *cluster.Node
	if err := none.Check(); err != nil || none.ID()+none.Name() != "" || none.Lost() != nil || none.Close() != nil {
		t.Errorf("without a cluster: %q, %v", none.ID(), err)
	}
}

func TestAKeyIsThatOfTheCluster(t *testing.T) {
	db := open(t)
	var keys []*agekey.Key
	for range 2 {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, agekey.Of(identity))
	}
	check := func(ctx context.Context, k *agekey.Key) error {
		return cluster.CheckKey(ctx, db, k, k.Recipient().String())
	}
	if err := errors.Join(check(t.Context(), keys[0]), check(t.Context(), keys[0])); err != nil {
		t.Fatal(err)
	}
	var setup *cluster.SetupError
	if err := check(t.Context(), keys[1]); !errors.As(err, &setup) {
		t.Errorf("another key: %v", err)
	}
}
