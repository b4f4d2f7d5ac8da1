package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/runner"
)

// logs are what the code printed, as it was written.
type logs struct {
	stdout, stderr runner.Output
	lastLines      []byte // the end of stdout, for lastJSON
}

// collect returns what the code printed: up to its delivery, which the guest
// makes last, or else up to its end.
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

// print returns the logs redacted, then cut. What both streams return together
// stays within the limit of stderr, because that is where a run prints them.
func (r *run) print(l logs) (stdout, stderr string) {
	stdout = r.printable(l.stdout, r.limits.Stdout)
	rest := r.limits.Stderr - int64(len(stdout))
	return stdout, r.printable(l.stderr, max(rest, 0))
}

// printable redacts what was kept of a stream and cuts it to limit bytes, the
// marker that says how much is missing included.
func (r *run) printable(output runner.Output, limit int64) string {
	text := r.redact(string(output.Head))
	missing := output.Total - int64(len(output.Head))
	if missing == 0 && int64(len(text)) <= limit {
		return text
	}
	// The marker's length depends on a number that depends on the cut: leave
	// room for the longest.
	const room = int64(len("\n<TRUNCATED 9223372036854775807 bytes>\n"))
	kept := truncate.Head(text, int(min(max(limit-room, 0), int64(len(text)))))
	marker := fmt.Sprintf("<TRUNCATED %d bytes>\n", int64(len(text)-len(kept))+missing)
	if kept != "" && !strings.HasSuffix(kept, "\n") {
		marker = "\n" + marker
	}
	if int64(len(kept)+len(marker)) > limit {
		return ""
	}
	return kept + marker
}
