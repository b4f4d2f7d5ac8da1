// Command redaction measures redact on examples that are not ours: what
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

// options say what is printed beside the tables.
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
	for _, fetch := range []func(context.Context, string) (set, error){gitleaksExamples, betterleaksExamples, kicsExamples, velesSecrets, sonarExamples, velesPersonal} {
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
