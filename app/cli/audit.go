package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/audit"
)

type auditVerbs struct {
	Tail   auditTailVerb   `cmd:"" help:"Print the newest records."`
	Show   auditShowVerb   `cmd:"" help:"Print one run as a tree: its calls, decisions, sizes and times."`
	Verify auditVerifyVerb `cmd:"" help:"Check that no record was changed, removed or reordered."`
	Export auditExportVerb `cmd:"" help:"Write the log in the form that another system reads."`
}

// auditFlags are the flags with which the log is found.
type auditFlags struct{ configFlag }

// find returns the directories of the log and of its keys.
func (f auditFlags) find() (system.Directories, error) {
	c, err := f.loadPlaces()
	if err != nil {
		return system.Directories{}, err
	}
	return system.FindDirectories(c)
}

type auditTailVerb struct {
	auditFlags
	Lines  int  `short:"n" default:"20" help:"How many records."`
	Follow bool `short:"f" help:"Go on with each new record until interrupted."`
	JSON   bool `name:"json" help:"Print the records as they are in the log."`
}

// Run prints the newest records, oldest first.
func (v *auditTailVerb) Run(ctx context.Context, s *streams) error {
	directories, err := v.find()
	if err != nil {
		return err
	}
	if v.Lines < 0 {
		return &usageError{"-n takes a number of records, from 0", "airlock audit tail -n 20"}
	}
	tail := func(w io.Writer) error {
		return audit.Tail(ctx, directories.Audit, v.Lines, v.Follow, func(r audit.Record) error {
			if v.JSON {
				return printLine(w, r)
			}
			return audit.WriteLine(w, r)
		})
	}
	switch {
	case !v.Follow && isMissing(directories.Audit):
		return noLogYet(s)
	case v.Follow:
		return tail(s.out)
	}
	return paged(s, tail)
}

// findRun returns the records of the run whose ID begins with id.
func findRun(dir, id string) (*audit.RunTree, error) {
	if isMissing(dir) {
		return nil, &hinted{audit.ErrNoRun, "airlock runs list", ExitFailed}
	}
	tree, err := audit.Show(dir, id)
	if errors.Is(err, audit.ErrNoRun) {
		err = &hinted{err, "airlock runs list", ExitFailed}
	}
	return tree, err
}

// isMissing reports whether the directory does not exist.
func isMissing(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// noLogYet prints a note that the log does not exist yet.
func noLogYet(s *streams) error {
	_, err := fmt.Fprintln(s.err, "airlock: there is no audit log yet: it begins with the first run")
	return err
}

type auditShowVerb struct {
	auditFlags
	RunID     string `arg:"" name:"run" help:"The run's ID, or the beginning of it."`
	Arguments bool   `help:"Show the arguments of the calls as they were; this needs their key."`
	JSON      bool   `name:"json" help:"Print JSON."`
}

// Run prints the records of one run.
func (v *auditShowVerb) Run(s *streams) error {
	directories, err := v.find()
	if err != nil {
		return err
	}
	tree, err := findRun(directories.Audit, v.RunID)
	if err != nil {
		return err
	}
	if v.Arguments {
		misfits, err := audit.ShowArguments(directories.Audit, directories.Keys, tree)
		if errors.Is(err, audit.ErrNoArgumentsKey) {
			return &hinted{err, "put audit-arguments.key into " + directories.Keys + ", or set audit.keepArguments, which makes one", ExitFailed}
		}
		if err != nil {
			return err
		}
		if misfits > 0 {
			fmt.Fprintf(s.err, "airlock: %d kept arguments are damaged or do not fit the log's hash, and are not shown\n", misfits)
		}
	}
	system.WithoutHeld(tree)
	if v.JSON {
		return printLine(s.out, tree)
	}
	return paged(s, func(w io.Writer) error { return audit.WriteTree(w, tree) })
}

type auditVerifyVerb struct {
	auditFlags
	Key     string `placeholder:"FILE" type:"existingfile" help:"The public key, from a copy that was kept elsewhere."`
	Head    string `placeholder:"HASH" help:"The head that an earlier verify printed and you kept elsewhere: its record must still be there."`
	Partial bool   `help:"Accept that the oldest files have been moved away."`
	// Witness and WitnessKey have no default: the verifier must choose whom to trust.
	Witness    string `placeholder:"FILE|URL" help:"What a witness has: a file of checkpoints or of a syslog server, or an HTTP witness."`
	WitnessKey string `name:"witness-key" placeholder:"KEY" help:"The public key of an HTTP witness, where it is not audit.witnessKey of the configuration."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run verifies the chain of the whole log and fails if it is broken.
func (v *auditVerifyVerb) Run(s *streams) error {
	directories, err := v.find()
	if err != nil {
		return err
	}
	opts := &audit.VerifyOptions{
		Keys: directories.Keys, Partial: v.Partial, Head: strings.TrimSpace(v.Head), Witness: v.Witness, WitnessKey: v.WitnessKey,
	}
	if opts.WitnessKey == "" && opts.Witness != "" {
		c, err := v.loadPlaces()
		if err != nil {
			return err
		}
		opts.WitnessKey = c.Audit.WitnessKey
	}
	if v.Key != "" {
		key, err := os.ReadFile(v.Key)
		if err != nil {
			return fmt.Errorf("reading the public key: %w", err)
		}
		opts.Verifier = strings.TrimSpace(string(key))
	}
	report, err := audit.Verify(directories.Audit, opts)
	switch {
	case errors.Is(err, audit.ErrNoLog):
		return &hinted{errors.New("there is no audit log yet: it begins with the first run"), "airlock doctor says whether code can run here", ExitFailed}
	case err != nil:
		return err
	}
	if v.JSON {
		err = printLine(s.out, report)
	} else {
		err = audit.WriteReport(s.out, report)
	}
	if err == nil && !report.OK() {
		return exitError(ExitFailed)
	}
	return err
}

type auditExportVerb struct {
	auditFlags
	Format audit.Format `enum:"jsonl,ocsf,otlp" default:"jsonl" help:"jsonl, ocsf or otlp."`
	From   uint64       `help:"The number of the first record."`
	RunID  string       `name:"run" help:"Only this run's records."`
}

// Run writes one JSON object per line, and ends at the first record that was changed.
func (v *auditExportVerb) Run(s *streams) error {
	directories, err := v.find()
	if err != nil {
		return err
	}
	if isMissing(directories.Audit) {
		return noLogYet(s)
	}
	return audit.Export(s.out, directories.Audit, v.Format, &audit.ExportOptions{From: v.From, RunID: v.RunID, Version: version})
}
