package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/runner"
)

// judge returns the result for the way in which a run ended, without metrics.
func (r *run) judge(ended ending, logs logs) Result {
	if r.request.Script != nil {
		logs.lastLines = nil // the output of a script is not its result
	}
	switch {
	case ended.delivered != nil:
		return r.judgeDelivery(*ended.delivered, logs)
	case ended.exit != nil:
		return r.judgeExit(*ended.exit, logs)
	case ended.timeout:
		return r.judgeTimeout(ended.pending)
	case ended.authority != "":
		return failed(errortype.Killed, false, "the run was ended, because "+ended.authority)
	case ended.cancelled:
		return failed(errortype.Killed, false, "the run was cancelled before the code had ended")
	case ended.lost:
		return failed(errortype.Interrupted, false, "the run was suspended and cannot go on, because its stored state "+
			"is lost or was changed; look at what it did before you run the code again")
	case ended.flood:
		return failed(errortype.Output, false, fmt.Sprintf(
			"the code wrote more than %d bytes to stdout and stderr and was stopped; print less", r.limits.Output))
	case ended.protocol != nil:
		return failed(errortype.Sandbox, false,
			"the code broke the protocol of the broker's socket and was stopped; call tools through the wrappers only")
	}
	return failed(errortype.Sandbox, false, "the sandbox failed; the run's ID leads to the cause in the log")
}

// keepsRunning finds what keeps Node from ending by itself.
var keepsRunning = lazyregexp.New(`\bsetInterval\(|\bcreateServer\(|\.listen\(`)

// judgeTimeout returns a retryable failure if the code was waiting for tools, which may
// answer sooner the next time, and a failure that is not retryable otherwise.
func (r *run) judgeTimeout(pending int) Result {
	longer := ""
	if r.longer > 0 {
		longer = fmt.Sprintf(", or run it with `background: true`, which allows %v", r.longer)
	}
	if pending > 0 {
		return failed(errortype.Timeout, true, fmt.Sprintf(
			"the code ran longer than its limit of %v and was stopped, with %d tool calls not answered yet; try "+
				"again, or make fewer calls in one run%s",
			r.limits.Timeout, pending, longer))
	}
	remedy := "do less in one run, or filter earlier" + longer
	if r.request.Language == "node" && keepsRunning.Match(r.request.Code) {
		remedy = "an interval or a server that is left keeps the program from ending: clearInterval(…) or close() " +
			"it, or end with process.exit()"
	}
	return failed(errortype.Timeout, false, fmt.Sprintf(
		"the code ran longer than its limit of %v and was stopped, though no tool call was awaited; %s",
		r.limits.Timeout, remedy))
}

// judgeDelivery returns the result for a delivery of the guest.
func (r *run) judgeDelivery(delivered finish, logs logs) Result {
	if !delivered.OK {
		return Result{Error: r.believe(*delivered.Error)}
	}
	if delivered.HasResult {
		return succeeded(delivered.Data)
	}
	return succeeded(logs.lastJSON())
}

// believe turns the guest's description of a failure into a Failure. The code can choose
// type, message and traceback, even a type like MemoryLimit or PolicyDenied. It cannot choose
// Source and Retryable: a failure is attributed to the broker or a tool only if a call of
// this run was answered with that failure.
func (r *run) believe(e guestError) *Failure {
	failure := &Failure{Type: e.Type, Message: e.Message, Traceback: e.Traceback, Source: errortype.SourceCode}
	if e.CallID == "" {
		failure.Retryable = r.comesBack(e)
		return failure
	}
	if told, ok := r.calls.Failed(e.CallID); ok && told.Type == e.Type {
		failure.Source, failure.Retryable, failure.CallID = told.Source, told.Retryable, told.CallID
	}
	return failure
}

// comesBack reports whether a failure comes from a wrapper whose server was missing when the
// run began and will be retried: another run may find it. Code can forge such a failure, but
// gains only the advice to try again.
func (r *run) comesBack(e guestError) bool {
	return strings.Contains(e.Message, "is not available") &&
		slices.ContainsFunc(r.snapshot.Missing(""), func(s catalog.MissingServer) bool {
			return s.Retryable && strings.Contains(e.Message, s.ServerID)
		})
}

// limitHit returns the configuration key of the limit that ended a run, or an empty string.
// It relies only on observations of the host.
func (r *run) limitHit(e ending) string {
	switch {
	case e.timeout:
		return r.timeoutKey()
	case e.flood:
		return "limits.output"
	case e.exit == nil:
		return ""
	}
	switch e.exit.Reason {
	case runner.ReasonMemory:
		return "sandbox.memory"
	case runner.ReasonProcesses:
		return "sandbox.pids"
	case runner.ReasonDisk:
		return "sandbox.disk"
	}
	return ""
}

// judgeExit returns the result of a program that ended without delivering anything: it was
// killed, or it exited without running the guest's exit hooks.
func (r *run) judgeExit(exit runner.Exit, logs logs) Result {
	switch exit.Reason {
	case runner.ReasonMemory:
		return failed(errortype.Memory, false, fmt.Sprintf(
			"the code needed more than its %d bytes of memory and was stopped; process the data in pieces",
			r.limits.Memory))
	case runner.ReasonProcesses:
		return failed(errortype.Processes, false, fmt.Sprintf(
			"the code started more processes and threads than it may have (%d, in %d bytes of memory) and was "+
				"stopped; start fewer at a time", r.limits.PIDs, r.limits.Memory))
	case runner.ReasonDisk:
		return failed(errortype.Disk, false, fmt.Sprintf(
			"the code wrote more than its %d bytes of files and was stopped", r.limits.Disk))
	}
	switch {
	case exit.Signal == int(syscall.SIGABRT) && bytes.Contains(
		logs.stderr.Tail, []byte("JavaScript heap out of memory")):
		return failed(errortype.Memory, false,
			"the code filled Node's heap and was stopped; process the data in pieces")
	case exit.Signal != 0:
		return failed(errortype.Killed, false, fmt.Sprintf(
			"the program was ended by signal %d (%v) before it could deliver a result", exit.Signal,
			syscall.Signal(exit.Signal)))
	case exit.Code != 0:
		return failed(errortype.NonZeroExit, false, fmt.Sprintf(
			"the program ended with exit code %d before it could deliver a result", exit.Code))
	}
	return succeeded(logs.lastJSON())
}

func succeeded(data json.RawMessage) Result {
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	return Result{OK: true, Data: data}
}

func failed(kind string, retryable bool, message string) Result {
	source := errortype.SourceCode
	if kind == errortype.Sandbox {
		source = errortype.SourceSandbox
	}
	return Result{Error: &Failure{Type: kind, Message: message, Retryable: retryable, Source: source}}
}

// lastJSON returns the JSON value at the end of stdout, which may have several lines, or else
// the last line that is valid JSON, or nil. It is used for code that prints its answer
// instead of setting `result`.
func (l logs) lastJSON() json.RawMessage {
	lines := bytes.Split(l.lastLines, []byte("\n"))
	if value := jsonAtEnd(bytes.TrimRight(l.lastLines, " \t\r\n")); value != nil {
		return value
	}
	for i := len(lines) - 1; i >= 0; i-- {
		line := bytes.TrimSpace(lines[i])
		if len(line) > 0 && json.Valid(line) {
			return line
		}
	}
	return nil
}

// jsonAtEnd returns the object or array, printed with indentation, that text ends
// in; nil for none. Such a value begins and ends in lines that are not indented.
func jsonAtEnd(text []byte) json.RawMessage {
	for _, brackets := range []string{"[]", "{}"} {
		if !bytes.HasSuffix(text, []byte("\n"+brackets[1:])) {
			continue
		}
		start := 0
		if !bytes.HasPrefix(text, []byte(brackets[:1])) || bytes.LastIndex(text, []byte("\n"+brackets[:1])) > 0 {
			start = bytes.LastIndex(text, []byte("\n"+brackets[:1])) + 1
		}
		var value bytes.Buffer
		if json.Compact(&value, text[start:]) == nil {
			return value.Bytes()
		}
	}
	return nil
}
