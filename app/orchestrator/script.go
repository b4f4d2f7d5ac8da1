package orchestrator

import (
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/runner"
)

// LanguageScript is the language of a run that is a plain Python script.
const LanguageScript = "script"

// Script configures the run of a plain Python script: like `python3 FILE`, in the image for
// scripts. It has no tools and no files of earlier runs. Its result is its output and its
// exit status.
type Script struct {
	Timeout time.Duration // of the run, instead of the configured one
	Stream  int64         // bytes of stdout, and of stderr, that are kept; at one more the script is stopped
}

// ScriptRequest asks for one run of a script.
func ScriptRequest(code string, s Script) Request {
	return Request{Language: LanguageScript, Code: []byte(code), Script: &s}
}

// Stop is the reason why a script was stopped. The zero value means that it ended by itself.
type Stop string

// Why a script was stopped.
const (
	StoppedAtTimeout Stop = "timeout"
	StoppedAtOutput  Stop = "output"    // it wrote more than Script.Stream to stdout or to stderr
	StoppedByCancel  Stop = "cancelled" // by its caller, or because Airlock ended
	StoppedAtLimit   Stop = "limit"     // memory, processes or disk: see the envelope's error
	StoppedBySandbox Stop = "sandbox"   // the sandbox failed, the script broke it, or it was not let in
)

// exitKilled is the exit status of a stopped script: minus the number of SIGKILL, as in
// Python's subprocess.
const exitKilled = -9

// End is how a script ended, as the host saw it.
type End struct {
	ExitCode int // 0 is success; minus the number of the signal that ended it
	Stopped  Stop
}

// endOf returns how a script ended. A delivered result does not count if it exceeded an
// output limit before.
func (r *run) endOf(ended ending, l logs) End {
	if r.request.Script == nil {
		return End{}
	}
	most := r.request.Script.Stream
	switch {
	case ended.flood, l.stdout.Total > most, l.stderr.Total > most:
		return End{exitKilled, StoppedAtOutput}
	case ended.delivered != nil && ended.delivered.OK:
		return End{}
	case ended.delivered != nil && ended.delivered.ExitCode != 0:
		return End{ExitCode: ended.delivered.ExitCode}
	case ended.delivered != nil:
		return End{ExitCode: 1} // an exception that nothing caught
	case ended.timeout:
		return End{exitKilled, StoppedAtTimeout}
	case ended.cancelled:
		return End{exitKilled, StoppedByCancel}
	case ended.exit != nil && ended.exit.Reason != runner.ReasonNone:
		return End{exitKilled, StoppedAtLimit}
	case ended.exit != nil && ended.exit.Signal != 0:
		return End{ExitCode: -ended.exit.Signal}
	case ended.exit != nil:
		return End{ExitCode: ended.exit.Code}
	}
	return End{exitKilled, StoppedBySandbox}
}

// scriptSandbox returns the request for the sandbox of a script. It is the same for all scripts
// with one stream limit, because their time limits are not enforced by the sandbox.
func (o *Orchestrator) scriptSandbox(image runner.Image, s Script) runner.Request {
	s.Timeout = o.opts.Limits.Timeout
	return runner.Request{Image: image, Limits: scriptLimits(o.opts.Limits, s)}
}

// WarmScripts prepares sandboxes for scripts with the default stream limit in the
// background. Without an image for scripts it does nothing.
func (o *Orchestrator) WarmScripts() {
	if o.parts.Script != nil {
		o.parts.Runner.Warm(o.scriptSandbox(*o.parts.Script, Script{Stream: ScriptStream}))
	}
}

// ScriptStream is the usual limit of a script's stdout, and of its stderr, in bytes.
const ScriptStream = 1 << 20

// scriptLimits are those of a script's sandbox.
func scriptLimits(limits runner.Limits, s Script) runner.Limits {
	limits.Timeout = s.Timeout
	limits.Stdout, limits.Stderr, limits.Stream = s.Stream, s.Stream, s.Stream
	// Each stream is stopped by itself: together they may have both.
	limits.Output = 2*s.Stream + 1
	return limits
}

// printScript returns the output of a script: each stream is redacted, then cut to its limit
// without a marker.
func (r *run) printScript(l logs) Printed {
	var p Printed
	p.Stdout, p.StdoutCut = r.headOf(l.stdout)
	p.Stderr, p.StderrCut = r.headOf(l.stderr)
	return p
}

func (r *run) headOf(output runner.Output) (kept string, missing int64) {
	text := strings.ToValidUTF8(r.redact(string(output.Head)), "\uFFFD")
	kept = truncate.Head(text, int(r.request.Script.Stream))
	return kept, output.Total - int64(len(output.Head)) + int64(len(text)-len(kept))
}
