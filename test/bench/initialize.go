package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// startRounds is how often each way is started: a host does it once a day.
const startRounds = 15

// measureInitialize starts `airlock mcp` until it has answered initialize and
// tools/list: with no server, and with servers of which one never answers, one is
// not there and one ends at once. Beside it starts a server by go-sdk alone.
func measureInitialize(ctx context.Context, b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var tools cleanup.Stack
	defer func() { _ = tools.Run() }() // a file of a directory that goes with the bench
	list, err := os.CreateTemp(b.home, "tools-*.json")
	if err != nil {
		return err
	}
	tools.Add(func() error { return os.Remove(list.Name()) })
	if _, err := list.WriteString(echoTools); err != nil {
		return errors.Join(err, list.Close())
	}
	if err := list.Close(); err != nil {
		return err
	}
	none := pooled(0)
	bad := pooled(0)
	bad["mcpServers"] = map[string]any{
		"hung":    map[string]any{"command": "sleep", "args": []string{"3600"}},
		"missing": map[string]any{"command": "/no/such/program"},
		"broken":  map[string]any{"command": "false"},
	}
	taken, err := inTurn(ctx, min(b.rounds, startRounds), 0,
		way{name: "go-sdk", take: func(ctx context.Context) (sample, error) {
			return timedStart(func(undo *cleanup.Stack) error {
				session, err := connect(ctx, exec.Command(self, "-serve", list.Name()))
				if err != nil {
					return err
				}
				undo.Add(session.Close)
				_, err = session.ListTools(ctx, nil)
				return err
			})
		}},
		way{name: "none", take: b.start(none)}, way{name: "bad", take: b.start(bad)})
	if err != nil {
		return err
	}
	plain := taken["go-sdk"]
	b.table.add(newRow("from the start of a server by go-sdk to its list of tools", "ms", plain),
		newRow("the same of `airlock mcp`, no server configured", "ms", taken["none"]).times(plain, "go-sdk"),
		newRow("the same, with servers that are hung, missing and broken", "ms", taken["bad"]).aims("≤ 200").times(
			plain, "go-sdk"))
	return nil
}

// start starts Airlock with a configuration and lists its tools.
func (b *bench) start(config map[string]any) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return timedStart(func(undo *cleanup.Stack) error {
			airlock, err := b.openFace(ctx, config, undo)
			if err != nil {
				return err
			}
			_, err = airlock.session.ListTools(ctx, nil)
			return err
		})
	}
}

// timedStart measures do, and not the end of what it has started.
func timedStart(do func(undo *cleanup.Stack) error) (taken sample, err error) {
	var undo cleanup.Stack
	taken, err = timed(func() error { return do(&undo) })
	if err := errors.Join(err, undo.Run()); err != nil {
		return nil, fmt.Errorf("starting: %w", err)
	}
	return taken, nil
}
