// Command redaction measures package redact with material from other sources: the examples that
// other scanners publish, which are fetched at run time and not kept here, and ordinary material in
// which nothing should be found. Gitleaks is measured with the same texts in the same run.
//
// It does not assert anything: docs/redaction.md explains the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/airlock-mcp/airlock/redact"
)

func main() { os.Exit(run()) }

func run() int {
	missed := flag.Bool("missed", false, "print every example that Airlock misses, and every negative that it flags")
	flagged := flag.Int("flagged", 0, "print up to so many places that Airlock flags in each ordinary material")
	examples := flag.Bool("examples", false, "leave out the ordinary material")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Stdout, options{*missed, *examples, *flagged}); err != nil {
		fmt.Fprintf(os.Stderr, "redaction: %v\nhint: run `make measure-redaction` in the repository's root\n", err)
		return 1
	}
	return 0
}

// options determine what is printed in addition to the tables.
type options struct {
	missed       bool
	examplesOnly bool
	flagged      int
}

// measure fetches the examples and the ordinary material and prints one table for each.
func measure(ctx context.Context, out io.Writer, o options) error {
	scratch, err := os.MkdirTemp("", "airlock-redaction-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	ours := airlock{redactor: redact.New()}
	others, err := newGitleaks()
	if err != nil {
		return err
	}
	var sets []set
	for _, fetch := range []func(context.Context, string) (set, error){gitleaksExamples, betterleaksExamples,
		kicsExamples, velesSecrets, sonarExamples, trufflehogExamples, velesPersonal} {
		s, err := fetch(ctx, scratch)
		if err != nil {
			return err
		}
		sets = append(sets, s)
	}
	printExamples(out, sets, ours, others, o.missed)
	if o.examplesOnly {
		return nil
	}
	materials, err := ordinary(ctx)
	if err != nil {
		return err
	}
	printMaterials(out, materials, ours, others, o.flagged)
	return nil
}
