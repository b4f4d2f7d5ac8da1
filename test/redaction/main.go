// Command redaction measures broker/redact on examples that are not ours: what
// other scanners publish as their own examples, fetched when it runs and never
// kept here, and ordinary material in which nothing should be found. Gitleaks
// is measured beside it, on the same texts in the same run.
//
// It asserts nothing: docs/redaction.md says what the figures mean.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() { os.Exit(run()) }

func run() int {
	missed := flag.Bool("missed", false, "print every example that Airlock misses, and every negative that it flags")
	flagged := flag.Int("flagged", 0, "print up to so many places that Airlock flags in each ordinary material")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Stdout, *missed, *flagged); err != nil {
		fmt.Fprintf(os.Stderr, "redaction: %v\nhint: run `make measure-redaction` in the repository's root\n", err)
		return 1
	}
	return 0
}

// measure fetches the examples and the ordinary material and prints one table for each.
func measure(ctx context.Context, out io.Writer, missed bool, flagged int) error {
	scratch, err := os.MkdirTemp("", "airlock-redaction-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	ours := newAirlock()
	others, err := newGitleaks()
	if err != nil {
		return err
	}
	var sets []set
	for _, fetch := range []func(context.Context, string) (set, error){gitleaksExamples, kicsExamples, velesExamples} {
		s, err := fetch(ctx, scratch)
		if err != nil {
			return err
		}
		sets = append(sets, s)
	}
	printExamples(out, sets, ours, others, missed)
	materials, err := ordinary(ctx)
	if err != nil {
		return err
	}
	printMaterials(out, materials, ours, others, flagged)
	return nil
}
