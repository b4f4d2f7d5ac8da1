// Command bench measures Airlock beside what does part of the same work on the
// same machine in the same minutes, and prints a table. It asserts nothing:
// docs/benchmarks.md says what the figures mean and which target they have.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() { os.Exit(run()) }

func run() int {
	runs := flag.Int("runs", 40, "how many times each way of a run is taken")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := filepath.Abs(".")
	if err == nil {
		err = measure(ctx, place{root: root, home: filepath.Join(root, ".airlock")}, *runs)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\nhint: run `make bench` in the repository's root\n", err)
		return 1
	}
	return 0
}

// place is where what is measured lies.
type place struct{ root, home string }

func (p place) bin(name string) string { return filepath.Join(p.root, "bin", name) }

// measure prints the table's rows as they are known.
func measure(ctx context.Context, at place, runs int) error {
	printMachine(at)
	printHead()
	for _, part := range []func(context.Context, place, int) error{measureRuns, measureThroughput, measureTools} {
		if err := part(ctx, at, runs); err != nil {
			return err
		}
	}
	return nil
}
