// Command soak runs a real daemon for a long time at half of its highest rate on this
// machine, with a mix of calls, files and approvals, and samples its resource usage every
// few seconds. It fails if memory or another resource keeps growing, if answers are slower
// at the end than at the beginning, or if an answer is wrong. docs/benchmarks.md explains
// the output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

func main() { os.Exit(run()) }

func run() int {
	length := flag.Duration("for", time.Hour, "how long the daemon works, without what comes before and behind")
	share := flag.Float64("share", 0.5, "which part of the highest rate is asked for")
	serve := flag.Bool("serve", false, "do nothing of this; be the MCP server on stdio that the programs call")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := errors.New("-for takes at least a minute, -share a number above 0 and up to 1")
	switch {
	case *serve:
		err = serveTools(ctx)
	case *length >= time.Minute && *share > 0 && *share <= 1:
		err = soak(ctx, *length, *share)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		return 1
	}
	return 0
}

// Parameters of the test apart from its work.
const (
	finding  = 20 * time.Second // in which the highest rate is found
	resting  = 40 * time.Second // until what was kept for the work is let go: the pool shrinks after 30 s
	sampling = 5 * time.Second  // between two looks at what is used
	crowd    = 8                // concurrent hosts with a session
)

// soak starts the daemon, lets it work, and judges.
func soak(ctx context.Context, length time.Duration, share float64) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	d, err := startDaemon(ctx, root, &undo)
	if err != nil {
		return err
	}
	crew := newCrew(d, crowd)
	undo.Add(crew.close)
	highest, err := crew.highestRate(ctx, finding)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\nHighest rate %.1f a second, of which %.0f %% are asked for.\n\n", describeMachine(), highest,
		share*100)
	before, err := atRest(ctx, d)
	if err != nil {
		return err
	}
	r := newReport(os.Stdout, length)
	if err := crew.work(ctx, highest*share, length, d, r); err != nil {
		return err
	}
	after, err := atRest(ctx, d)
	if err != nil {
		return err
	}
	r.end(before, after)
	return errors.Join(append(crew.wrong(), r.judge(before, after)...)...)
}

// atRest returns what the daemon uses when it has had nothing to do for a while.
func atRest(ctx context.Context, d *daemon) (usage, error) {
	if err := pause(ctx, resting); err != nil {
		return usage{}, err
	}
	return d.usage()
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}
