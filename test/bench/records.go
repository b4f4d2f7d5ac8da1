package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
)

// recordSizes are the numbers of records of the measured logs. The last one is ten times the first one.
func recordSizes() []int { return []int{10_000, 30_000, 100_000} }

const (
	recorders    = 16 // callers that append at the same time
	callsOfARun  = 10
	readsOfALog  = 3  // how often each command reads a log
	shareOfABusy = 20 // the busy run makes one call for so many records of the log
)

// readers are the commands that read a log, by what they do. Each has the IDs of a run of the usual size, in the
// middle of the log, and of the busy one at its end.
var readers = []struct {
	what string
	args func(run, busy string) []string
}{
	{"`airlock audit verify`", func(_, _ string) []string { return []string{"audit", "verify"} }},
	{"`airlock audit export`", func(_, _ string) []string { return []string{"audit", "export"} }},
	{"`airlock audit report --format csv`", func(_, _ string) []string {
		return []string{"audit", "report", "--format", "csv"}
	}},
	{"`airlock audit tail`", func(_, _ string) []string { return []string{"audit", "tail"} }},
	{"`airlock runs list`", func(_, _ string) []string { return []string{"runs", "list"} }},
	{"`airlock audit show` of a run of 10 calls", func(run, _ string) []string {
		return []string{"audit", "show", run}
	}},
	{"`airlock audit show` of a run with a tenth of all records", func(_, busy string) []string {
		return []string{"audit", "show", busy, "--json"}
	}},
	{"`airlock run` of a trivial program", func(_, _ string) []string { return []string{"run", "trivial.py"} }},
}

// measureRecords fills logs of three sizes and reads them with the commands that people use.
func measureRecords(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	spent := make(map[string][]sample) // processor times by what a command does, for each size
	peaks := make(map[string][]sample)
	for _, size := range recordSizes() {
		home, err := stateDirectory(b.home, "records-", &undo)
		if err != nil {
			return err
		}
		rate, each, err := fillLog(ctx, home, size)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%s records by %d callers", thousands(size), recorders)
		b.table.add(newRates(what, "/s", sample{rate}).aims("≥ 1667"),
			newRow("processor time of each", "µs", sample{each}))
		for _, reader := range readers {
			args := reader.args(runID(size/(2*callsOfARun+2)/2), busyRun)
			var processor, peak sample
			for range readsOfALog {
				use, err := b.command(ctx, home, args)
				if err != nil {
					return err
				}
				processor, peak = append(processor, use.processor), append(peak, use.peak)
			}
			spent[reader.what] = append(spent[reader.what], processor)
			peaks[reader.what] = append(peaks[reader.what], peak)
		}
	}
	for _, reader := range readers {
		for i, size := range recordSizes() {
			r := newRow(fmt.Sprintf("%s, %s records", reader.what, thousands(size)), "ms", spent[reader.what][i])
			p := newRow("its peak memory", "MB", peaks[reader.what][i])
			if i > 0 {
				smallest := thousands(recordSizes()[0])
				r, p = r.times(spent[reader.what][0], smallest), p.times(peaks[reader.what][0], smallest)
			}
			b.table.add(r, p)
		}
	}
	return nil
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

const busyRun = "run_busybusybusybusybusybusyb1"

func runID(n int) string { return fmt.Sprintf("run_%026d", n) }

// fillLog appends so many records to a new log, by callers that each make runs of a few calls. A tenth of all records
// is of one run. rate is the number of records in a second, and each the processor time of one, in microseconds.
func fillLog(ctx context.Context, home string, size int) (rate, each float64, err error) {
	log, err := audit.Open(store.Audit(home), &audit.Options{Keys: store.Keys(home),
		KeepArguments: &audit.ArgumentsOptions{Keep: 7 * 24 * time.Hour, Size: 64 << 20}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	before, began := ownProcessorTime(), time.Now()
	all, ctx := errgroup.WithContext(ctx)
	runs := size * 9 / 10 / (2*callsOfARun + 2)
	for n := range recorders {
		all.Go(func() error {
			for run := n; run < runs; run += recorders {
				if err := recordRun(ctx, log, runID(run), callsOfARun); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return 0, 0, err
	}
	took, processor := time.Since(began), ownProcessorTime()-before
	records := float64(runs * (2*callsOfARun + 2))
	if err := recordRun(context.WithoutCancel(ctx), log, busyRun, size/shareOfABusy); err != nil {
		return 0, 0, err
	}
	return records / took.Seconds(), float64(processor.Microseconds()) / records, nil
}

// recordRun appends the records of a run as an orchestrator and a broker do.
func recordRun(ctx context.Context, log *audit.Log, id string, calls int) error {
	who := audit.Identity{RunID: id, SessionID: "ses_bench", Principal: "bench", CallerKind: "local"}
	errs := []error{log.Append(ctx, audit.Record{Kind: audit.KindRunStart, Identity: who,
		RunFacts: audit.RunFacts{Language: "python", InputDigest: log.Hash([]byte(id))}})}
	for n := range calls {
		values := fmt.Appendf(nil, `{"message":"message %d","of":%q}`, n, id)
		r := audit.Record{Kind: audit.KindIntent, Identity: who,
			Act: audit.Act{CallID: fmt.Sprintf("call_%s%06d", id[4:], n), ParentID: id, ServerID: "target",
				ToolName: "echo", ArgumentsHash: log.Hash(values),
				Arguments: log.Arguments(json.RawMessage(values)), Values: values},
			Ruling: audit.Ruling{Decision: "allow", Policies: []string{"airlock.read-only"}, Risk: "read"}}
		errs = append(errs, log.Append(ctx, r))
		r.Kind, r.Values = audit.KindOutcome, nil
		r.Outcome, r.ResultHash, r.ResultSize, r.DurationMS = audit.OutcomeOK, log.Hash(values), int64(len(values)), 1
		errs = append(errs, log.Note(ctx, r))
	}
	return errors.Join(append(errs, log.Note(ctx, audit.Record{Kind: audit.KindRunEnd, Identity: who,
		Effect: audit.Effect{Outcome: audit.OutcomeOK}, RunFacts: audit.RunFacts{Calls: calls}}))...)
}

// ownProcessorTime returns the processor time of this process so far.
func ownProcessorTime() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// consumption is what one command has used.
type consumption struct {
	processor float64 // milliseconds, with the processes that it has waited for
	peak      float64 // megabytes (10⁶ bytes) of its largest process
}

// command runs Airlock with a state directory.
func (b *bench) command(ctx context.Context, home string, args []string) (consumption, error) {
	if err := os.WriteFile(filepath.Join(home, "trivial.py"), []byte(languages()[0].trivial), 0o600); err != nil {
		return consumption{}, err
	}
	cmd := exec.CommandContext(ctx, b.bin("airlock"), args...)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "AIRLOCK_HOME="+home)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return consumption{}, fmt.Errorf("airlock %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	use := consumption{processor: milliseconds(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())}
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		use.peak = float64(used.Maxrss) * 1024 / 1e6
	}
	return use, nil
}
