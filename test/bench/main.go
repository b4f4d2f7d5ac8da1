// Command bench measures Airlock beside programs that do part of the same work, on the
// same machine at the same time, and prints a table. It asserts nothing:
// docs/benchmarks.md explains the figures and their targets.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

func main() { os.Exit(run()) }

func run() int {
	rounds := flag.Int("runs", 200, "how many times cheap ways are taken; others are taken less often")
	only := flag.String("only", "", "measure only the parts whose names this regular expression matches")
	asJSON := flag.String("json", "", "a file to write the table to as JSON, too")
	serve := flag.String("serve", "", "measure nothing; be an MCP server on stdio with the tools of this file")
	proxy := flag.String("proxy", "", "measure nothing; be a reverse proxy before the server at this URL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *serve != "":
		err = serveTools(ctx, *serve)
	case *proxy != "":
		err = serveProxy(ctx, *proxy)
	default:
		err = measure(ctx, *rounds, *only, *asJSON)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\nhint: run `make bench` in the repository's root\n", err)
		return 1
	}
	return 0
}

// bench is one run of all measurements.
type bench struct {
	root   string // the repository
	home   string // a separate AIRLOCK_HOME with the repository's images
	rounds int
	table  *table
}

func (b *bench) bin(name string) string { return filepath.Join(b.root, "bin", name) }

// part measures one kind of row.
type part struct {
	name    string
	measure func(context.Context, *bench) error
}

// parts are in the order in which the table shows them.
func parts() []part {
	return []part{
		{"run", measureRuns},
		{"telemetry", measureTelemetry},
		{"suspension", measureSuspension},
		{"start", measureStart},
		{"initialize", measureInitialize},
		{"rate", measureRate},
		{"cost", measureCost},
		{"call", measureCalls},
		{"trace", measureTrace},
		{"at once", measureAtOnce},
		{"instead", measureInstead},
		{"print", measurePrinting},
		{"memory", measureMemory},
		{"suspend", measureSuspended},
		{"contained", measureContained},
		{"wrappers", measureWrappers},
		{"import", measureImports},
		{"search", measureSearch},
		{"change", measureChange},
		{"audit", measureAudit},
		{"records", measureRecords},
		{"large", measureLarge},
		{"agents", measureAgents},
		{"scale tools", measureManyTools},
		{"scale sessions", measureManySessions},
		{"cluster", measureCluster},
		{"decide", measureDecisions},
		{"redact", measureRedaction},
		{"verdict", measureVerdicts},
		{"script", measureScripts},
		{"burst", measureBursts},
		{"crowd", measureCrowd},
	}
}

// measure prints the table's rows as they are known.
func measure(ctx context.Context, rounds int, only, asJSON string) (err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if rounds < 1 {
		return fmt.Errorf("-runs %d: at least one is needed", rounds)
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	b, err := newBench(rounds, &undo)
	if err != nil {
		return err
	}
	b.table.begin(describeMachine(b))
	for _, part := range parts() {
		if !chosen.MatchString(part.name) {
			continue
		}
		if err := part.measure(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	b.table.end(load(), time.Now())
	if asJSON != "" {
		return b.table.writeJSON(asJSON)
	}
	return nil
}

// newBench prepares a state directory for this run only. It is on the same disk as the
// state of real runs, because the disk determines the speed of records.
func newBench(rounds int, undo *cleanup.Stack) (*bench, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	home, err := stateDirectory(filepath.Join(root, ".airlock"), "bench-", undo)
	if err != nil {
		return nil, err
	}
	return &bench{root: root, home: home, rounds: rounds, table: &table{out: os.Stdout}}, nil
}

// stateDirectory makes a state directory in another one, with the images of that one.
func stateDirectory(in, prefix string, undo *cleanup.Stack) (string, error) {
	dir, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return "", err
	}
	undo.Add(func() error { return os.RemoveAll(dir) })
	return dir, os.Symlink(filepath.Join(in, "images"), filepath.Join(dir, "images"))
}
