package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/cluster"
)

// dying is how many nodes are killed.
const dying = 6

// measureDeadNodes measures how long it takes from the death of a node until another one answers that the sessions of
// that node are gone.
func measureDeadNodes(ctx context.Context, f *fleet) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	nodes, err := f.nodes(ctx, map[string]any{"sandbox": map[string]any{"pool": 0}}, &undo, "watching",
		"dying-0", "dying-1", "dying-2", "dying-3", "dying-4", "dying-5")
	if err != nil {
		return err
	}
	watching := nodes[0]
	took := make(sample, dying)
	waiting, within := errgroup.WithContext(ctx)
	for i, n := range nodes[1:] {
		session, err := n.session(ctx, f.tokens[0])
		if err != nil {
			return err
		}
		if err := n.command.Process.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		began := time.Now()
		_ = n.command.Wait() // it was killed
		waiting.Go(func() error {
			for {
				status, err := watching.ping(within, session)
				if err != nil || status == http.StatusNotFound {
					took[i] = time.Since(began).Seconds()
					return err
				}
				if status != http.StatusServiceUnavailable {
					return fmt.Errorf("a session of a node that was killed: HTTP %d", status)
				}
				if err := rest(within, 20*time.Millisecond); err != nil {
					return err
				}
			}
		})
		if err := rest(ctx, 700*time.Millisecond); err != nil { // so that they die at other times of their heartbeats
			return err
		}
	}
	if err := waiting.Wait(); err != nil {
		return err
	}
	f.table.add(newRow("from `kill -9` of a node until another one answers that its sessions are gone", "s", took).
		aims("≤ 10"))
	return nil
}

// The clients of measureReplacement.
const (
	runningClients = 2 // of each revision of MCP
	actingClients  = 4
)

// measureReplacement restarts three nodes behind nginx, one after the other, while clients run programs and agents
// announce actions.
func measureReplacement(ctx context.Context, f *fleet) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	// nginx cannot read a directory below one that only its owner may enter.
	dir, err := os.MkdirTemp("", "nginx")
	if err != nil {
		return err
	}
	undo.Add(func() error { return os.RemoveAll(dir) })
	var nodes []*serving
	var addresses []string
	for i := range 3 {
		n, err := f.node(fmt.Sprint("replaced-", i), map[string]any{"serve": cluster.BehindBalancer()}, &undo)
		if err != nil {
			return err
		}
		address, release, err := testenv.ReserveAddress()
		if err != nil {
			return err
		}
		undo.Add(func() error { release(); return nil })
		n.listen = address
		if err := n.start(ctx, &undo); err != nil {
			return err
		}
		nodes, addresses = append(nodes, n), append(addresses, address)
	}
	client, stop, err := cluster.StartBalancer(f.root, dir, addresses)
	if err != nil {
		return err
	}
	undo.Add(func() error { stop(); return nil })
	clients := &cluster.Clients{HTTP: client, Token: f.tokens[0]}
	var work sync.WaitGroup
	defer work.Wait()
	defer clients.Stop()
	for i := range actingClients {
		w, err := nodes[0].register(ctx, f.tokens[0])
		if err != nil {
			return err
		}
		work.Go(func() { clients.Act(ctx, w.id, w.token, fmt.Sprint("client ", i, " ")) })
	}
	for _, revision := range []string{bareRevision, "2026-07-28"} {
		for range runningClients {
			work.Go(func() { clients.Run(ctx, revision, "import time\ntime.sleep(0.3)\nresult = 1") })
		}
	}
	var took sample
	for _, n := range nodes {
		if err := rest(ctx, 2*time.Second); err != nil {
			return err
		}
		got, err := timed(func() error { return errors.Join(end(n.command), n.start(ctx, &undo)) })
		if err != nil {
			return fmt.Errorf("restarting a node: %w", err)
		}
		took = append(took, got...)
	}
	if err := rest(ctx, 2*time.Second); err != nil {
		return err
	}
	clients.Stop()
	work.Wait()
	failures := clients.Failures()
	for _, failure := range failures[:min(10, len(failures))] {
		fmt.Fprintf(os.Stderr, "bench: while nodes were replaced: %v\n", failure)
	}
	f.table.add(newRow("restart of one of three nodes behind nginx, under load", "ms", took),
		newRow(fmt.Sprintf("requests that failed while all three were restarted; %d programs and %d actions succeeded",
			clients.Runs.Load(), clients.Acts.Load()), "", sample{float64(len(failures))}).aims("0"))
	return nil
}
