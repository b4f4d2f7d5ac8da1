// Package audit has the verbs that read and check the audit log and the integrity of the program.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Verbs are the verbs of airlock audit.
type Verbs struct {
	Tail   auditTailVerb   `cmd:"" help:"Print the newest records."`
	Show   auditShowVerb   `cmd:"" help:"Print one run as a tree: its calls, decisions, sizes and times."`
	Verify auditVerifyVerb `cmd:"" help:"Check that no record was changed, removed or reordered."`
	Export auditExportVerb `cmd:"" help:"Write the log in the form that another system reads."`
	Report auditReportVerb `cmd:"" help:"Print who sent what where, on whose behalf, and who approved it."`
	Access auditAccessVerb `cmd:"" help:"List who can do what now: valid tokens, agents and sign-ins, and when each was last used."`
	Erase  auditEraseVerb  `cmd:"" help:"Erase the kept arguments and recordings of a person's runs, and record that."`
}

type auditTailVerb struct {
	verb.AuditFlags
	verb.PeriodFlags
	Lines  int  `short:"n" default:"20" help:"How many records; with --since or --until, all of the period."`
	Follow bool `short:"f" help:"Go on with each new record until interrupted."`
	// Cluster needs the daemon of this node.
	Cluster bool `help:"Print the records of all nodes of the cluster, with their nodes."`
	JSON    bool `name:"json" help:"Print the records as they are in the log."`
}

// Run prints the newest records, oldest first.
func (v *auditTailVerb) Run(ctx context.Context, s *verb.Streams) error {
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	if v.Lines < 0 {
		return verb.Usage("-n must be a number of records, 0 or more", "airlock audit tail -n 20")
	}
	if v.Cluster {
		return v.tailCluster(ctx, s)
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	tail := func(w io.Writer) error {
		visit := func(r audit.Record) error {
			if v.JSON {
				return verb.PrintLine(w, r)
			}
			return audit.WriteLine(w, r)
		}
		if !period.IsZero() {
			return audit.TailPeriod(ctx, directories.Audit, period, v.Follow, visit)
		}
		return audit.Tail(ctx, directories.Audit, v.Lines, v.Follow, visit)
	}
	switch {
	case !v.Follow && verb.IsMissing(directories.Audit):
		return noLogYet(s)
	case v.Follow:
		return tail(s.Out)
	}
	return verb.Paged(s, tail)
}

// noLogYet prints a note that the log does not exist yet.
func noLogYet(s *verb.Streams) error {
	_, err := fmt.Fprintln(s.Err, "airlock: there is no audit log yet: it begins with the first run")
	return err
}

type auditShowVerb struct {
	verb.AuditFlags
	RunID string `arg:"" name:"run" help:"The run's ID, or the beginning of it."`
	verb.PeriodFlags
	Arguments bool `help:"Show the arguments of the calls as they were; this needs their key."`
	Cluster   bool `help:"Show the records of all nodes of the cluster. RUN is the whole ID."`
	JSON      bool `name:"json" help:"Print JSON."`
}

// Run prints the records of one run.
func (v *auditShowVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Cluster {
		return v.showCluster(ctx, s)
	}
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	tree, err := verb.FindRunIn(directories.Audit, v.RunID, period)
	if err != nil {
		return err
	}
	if v.Arguments {
		misfits, err := audit.ShowArguments(directories.Audit, directories.Keys, tree)
		if errors.Is(err, audit.ErrNoArgumentsKey) {
			return verb.WithHint(err, "put audit-arguments.key into "+directories.Keys+
				", or set audit.keepArguments to make a new key for later runs", verb.ExitFailed)
		}
		if err != nil {
			return err
		}
		if misfits > 0 {
			fmt.Fprintf(s.Err, "airlock: %d kept arguments are damaged or do not fit the log's hash, and are not "+
				"shown\n", misfits)
		}
	}
	runlog.Redact(tree, credentials.Printed())
	if v.JSON {
		return verb.PrintLine(s.Out, tree)
	}
	return verb.Paged(s, func(w io.Writer) error { return audit.WriteTree(w, tree) })
}

type auditVerifyVerb struct {
	verb.AuditFlags
	Key     string `placeholder:"FILE" type:"existingfile" help:"The public key, from a copy that was kept elsewhere."`
	Head    string `placeholder:"HASH" help:"The head that an earlier verify printed and you kept elsewhere: its record must still be there."`
	Partial bool   `help:"Accept that the oldest files have been moved away."`
	// Witness and WitnessKey have no default: the verifier must choose whom to trust.
	Witness    string `placeholder:"FILE|URL" help:"What a witness has: a file of checkpoints or of a syslog server, or an HTTP witness."`
	WitnessKey string `name:"witness-key" placeholder:"KEY" help:"The public key of an HTTP witness, where it is not audit.witnessKey of the configuration."`
	Cluster    bool   `help:"Verify the logs of all nodes of the cluster, and the log of their checkpoints in its database."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run verifies the chain of the whole log and fails if it is broken.
func (v *auditVerifyVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Cluster {
		return v.verifyCluster(ctx, s)
	}
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	opts := &audit.VerifyOptions{
		Keys: directories.Keys, Partial: v.Partial, Head: strings.TrimSpace(v.Head), Witness: v.Witness,
		WitnessKey: v.WitnessKey,
	}
	if opts.WitnessKey == "" && opts.Witness != "" {
		c, err := v.LoadState(s.Err)
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
		return verb.WithHint(errors.New("there is no audit log yet: it begins with the first run"),
			"airlock doctor says whether code can run here", verb.ExitFailed)
	case err != nil:
		return err
	}
	if v.JSON {
		err = verb.PrintLine(s.Out, report)
	} else {
		err = audit.WriteReport(s.Out, report)
	}
	if err == nil && !report.OK() {
		return verb.ExitError(verb.ExitFailed)
	}
	return err
}

type auditExportVerb struct {
	verb.AuditFlags
	Format audit.Format `enum:"jsonl,ocsf,otlp" default:"jsonl" help:"jsonl, ocsf or otlp."`
	From   uint64       `help:"The number of the first record."`
	RunID  string       `name:"run" help:"Only this run's records."`
	verb.PeriodFlags
	To     string `placeholder:"FILE|URL" help:"Where to send the records: a file, syslog+tcp://host:601, syslog+udp://host:514, syslog+unix:///dev/log, or the URL of an OTLP endpoint such as http://127.0.0.1:4318/v1/logs."`
	Follow bool   `short:"f" help:"Go on with each new record until interrupted; retry what cannot be sent."`
	Cursor string `placeholder:"FILE" help:"A file that remembers what was sent, so that the next export continues there."`
	// Cluster writes files, because a record does not name its node.
	Cluster bool `help:"Write a file for each node of the cluster into the directory --to."`
}

// Run writes one JSON object per line, and ends at the first record that was changed.
func (v *auditExportVerb) Run(ctx context.Context, s *verb.Streams) error {
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	if verb.IsMissing(directories.Audit) {
		return noLogYet(s)
	}
	opts := audit.ExportOptions{From: v.From, RunID: v.RunID, Version: verb.Version}
	if opts.Period, err = v.Period(); err != nil {
		return err
	}
	if v.Cluster {
		return v.exportCluster(ctx, s, opts)
	}
	if v.To == "" {
		if v.Follow || v.Cursor != "" {
			return verb.Usage("--follow and --cursor need --to",
				"airlock audit export --format ocsf --follow --to /var/log/airlock.ocsf")
		}
		return audit.Export(s.Out, directories.Audit, v.Format, &opts)
	}
	to, format, err := v.sink()
	if err != nil {
		return err
	}
	last := ""
	return audit.Delivery{Format: format, ExportOptions: opts, Cursor: v.Cursor, Follow: v.Follow,
		Failed: func(err error) {
			if text := err.Error(); text != last { // not again every two seconds
				fmt.Fprintln(s.Err, "airlock: "+verb.Clean(text)+"; trying again")
				last = text
			}
		}}.Deliver(ctx, directories.Audit, to)
}

// sink returns the destination of an export and the format that it takes.
func (v *auditExportVerb) sink() (witness.Sink, audit.Format, error) {
	address := v.To
	if !strings.Contains(address, "://") {
		var err error
		if address, err = filepath.Abs(address); err != nil {
			return nil, "", err
		}
	}
	to, err := witness.OpenSink(address)
	if err != nil {
		return nil, "", verb.Usage(err.Error(), "airlock audit export --to /var/log/airlock.ocsf")
	}
	if witness.IsHTTP(address) {
		return to, audit.FormatOTLP, nil
	}
	return to, v.Format, nil
}

type auditReportVerb struct {
	verb.AuditFlags
	verb.PeriodFlags
	Principal string           `placeholder:"NAME" help:"Only what was done on behalf of this principal."`
	Server    string           `placeholder:"NAME" help:"Only what was sent to this server."`
	Format    audit.ReportForm `enum:"table,csv,json,html" default:"table" help:"table, csv, json or html."`
	Output    string           `short:"o" placeholder:"FILE" help:"Write to a new file."`
}

// Run writes one line for each act.
func (v *auditReportVerb) Run(s *verb.Streams) error {
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	opts := audit.ReportOptions{Principal: v.Principal, Server: v.Server}
	if opts.Period, err = v.Period(); err != nil {
		return err
	}
	if verb.IsMissing(directories.Audit) {
		return noLogYet(s)
	}
	write := func(w io.Writer) error { return audit.WriteRows(w, directories.Audit, v.Format, opts) }
	switch {
	case v.Output != "":
		err := store.Create(v.Output, 0o600, func(file *os.File) error { return write(file) })
		if errors.Is(err, fs.ErrExist) {
			return verb.Usage(fmt.Sprintf("%q exists already", v.Output), "-o takes the name of a new file")
		}
		return err
	case v.Format == audit.ReportTable:
		return verb.Paged(s, write)
	}
	return write(s.Out)
}
