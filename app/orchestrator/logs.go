package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// logs are the unredacted output of the code.
type logs struct {
	stdout, stderr runner.Output
	lastLines      []byte // the end of stdout, for lastJSON
}

// size returns how many bytes of the output are redacted.
func (l logs) size() int { return len(l.stdout.Head) + len(l.stderr.Head) }

// collect returns the output of the code up to its delivery, which is the guest's last
// action, or up to its end.
func (r *run) collect(ctx context.Context, ended ending) logs {
	if ended.delivered != nil {
		r.sandbox.Flush()
	} else if err := r.sandbox.Drain(ctx); err != nil {
		r.parts.Logger.WarnContext(ctx, "a run's output may be incomplete",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
	}
	stdout := r.sandbox.Stdout()
	return logs{stdout: stdout, stderr: r.sandbox.Stderr(), lastLines: stdout.Tail}
}

// print returns the logs redacted, then cut.
func (r *run) print(l logs) Printed {
	if r.request.Script != nil {
		return r.printScript(l)
	}
	var p Printed
	p.Stdout, p.StdoutCut = printable(r.redact(string(l.stdout.Head)), l.stdout, r.limits.Stdout)
	p.Stderr, p.StderrCut = printable(r.redact(string(l.stderr.Head)), l.stderr, r.stderrLimit(len(p.Stdout)))
	return p
}

// stderrLimit returns how many bytes of stderr are kept if stdout has the given size. Both
// are printed to one stream, which is limited by the limit of stderr. If that limit is not
// larger than the limit of stdout, as in the profile `wide`, the streams are limited
// separately.
func (r *run) stderrLimit(stdout int) int64 {
	if r.limits.Stderr <= r.limits.Stdout {
		return r.limits.Stderr
	}
	return r.limits.Stderr - int64(stdout)
}

// printedSoFar returns the complete lines that the code has printed so far. An incomplete
// line is left out, because it may contain the beginning of a secret that is only recognized
// when it is complete. Placeholders are not numbered, because the numbers belong to the
// final output of the run.
func (r *run) printedSoFar() Printed {
	var p Printed
	l := logs{stdout: r.sandbox.Stdout(), stderr: r.sandbox.Stderr()}
	r.inTurn(context.Background(), l.size(), func() {
		p.Stdout, p.StdoutCut = soFar(r.parts.Redactor, l.stdout, r.limits.Stdout)
		p.Stderr, p.StderrCut = soFar(r.parts.Redactor, l.stderr, r.stderrLimit(len(p.Stdout)))
	})
	return p
}

// soFar returns the complete lines of an unfinished stream, and how many bytes of them were
// cut.
func soFar(redactor *redact.Redactor, output runner.Output, limit int64) (shown string, missing int64) {
	if output.Total == int64(len(output.Head)) {
		end := bytes.LastIndexByte(output.Head, '\n') + 1
		output = runner.Output{Head: output.Head[:end], Total: int64(end)}
	}
	cleaned, _ := redactor.Bytes(output.Head)
	return printable(strings.ToValidUTF8(string(cleaned), "\uFFFD"), output, limit)
}

// printable cuts text, the redacted head of a stream, to limit bytes and returns how many
// bytes are missing. The limit includes the marker with that number.
func printable(text string, output runner.Output, limit int64) (kept string, missing int64) {
	missing = output.Total - int64(len(output.Head))
	if missing == 0 && int64(len(text)) <= limit {
		return text, 0
	}
	// The marker's length depends on a number that depends on the cut: reserve space for
	// the longest.
	const markerSize = int64(len("\n<TRUNCATED 9223372036854775807 bytes>\n"))
	kept = truncate.Head(text, int(min(max(limit-markerSize, 0), int64(len(text)))))
	missing += int64(len(text) - len(kept))
	marker := fmt.Sprintf("<TRUNCATED %d bytes>\n", missing)
	if kept != "" && !strings.HasSuffix(kept, "\n") {
		marker = "\n" + marker
	}
	if int64(len(kept)+len(marker)) > limit {
		return "", missing
	}
	return kept + marker, missing
}
