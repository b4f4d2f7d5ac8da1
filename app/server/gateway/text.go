package gateway

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// truncated is added after a stream that was cut.
const truncated = "[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]"

func text(s string) mcp.Content { return &mcp.TextContent{Text: s} }

func result(texts ...string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{}
	for _, t := range texts {
		res.Content = append(res.Content, text(t))
	}
	return res
}

// failed answers a call that was not executed, with a hint.
func failed(problem, hint string) *mcp.CallToolResult {
	res := result(withHint(problem, hint))
	res.IsError = true
	return res
}

func withHint(problem, hint string) string {
	if hint == "" {
		return "Error: " + problem + "."
	}
	return "Error: " + problem + ".\nhint: " + hint
}

// blocked answers with a decision that blocks a call.
func blocked(call gateway.Call, d gateway.Decision) *mcp.CallToolResult {
	res := result(d.Text())
	if _, err := strictjson.Value(call.Arguments); err != nil && len(call.Arguments) > 0 {
		res.Content = append(res.Content, text("The arguments were not read: "+err.Error()+"."))
	}
	if replacement, removed := removedTools[call.Tool]; removed {
		res.Content = append(res.Content, text(
			"The verify_* tools have been removed. Use execute_python_code to write and run a Python verification "+
				"script: "+replacement))
	}
	res.IsError, res.StructuredContent = true, d
	return res
}

// removedTools are the tools of former versions, with the imports that replace them.
var removedTools = map[string]string{
	"verify_math": "from sympy import ..., or from qwed_new.engines.math_engine import " +
		"verify_math_expression",
	"verify_logic":                "from qwed_new.engines.logic_engine import verify_logic_statement",
	"verify_code":                 "from qwed_new.guards.code_guard import CodeGuard",
	"verify_sql":                  "from qwed_new.guards.sql_guard import SQLGuard",
	"verify_banking_compliance":   "from qwed_finance import FinanceVerifier",
	"verify_iso_20022":            "from qwed_finance import ISOGuard",
	"verify_commerce_transaction": "from qwed_ucp import UCPVerifier",
	"verify_legal_deadline":       "from qwed_legal import DeadlineGuard",
	"verify_legal_citation":       "from qwed_legal import CitationGuard",
	"verify_legal_liability":      "from qwed_legal import LiabilityGuard",
	"verify_legal_jurisdiction":   "from qwed_legal import JurisdictionGuard",
	"verify_legal_statute":        "from qwed_legal import StatuteOfLimitationsGuard",
	"verify_system_command":       "from qwed_sdk.guards.system_guard import SystemGuard",
	"verify_file_path":            "from qwed_sdk.guards.system_guard import SystemGuard",
	"verify_config_secrets":       "from qwed_sdk.guards.config_guard import ConfigGuard",
}

// synchronousText returns the texts of an answer about a synchronous program. If the program
// timed out, the first text is only the sentence about the timeout, and the second one is the
// output.
func synchronousText(outcome *orchestrator.Outcome) []string {
	if outcome.End.Stopped != orchestrator.StoppedAtTimeout {
		return []string{outputText(outcome)}
	}
	texts := []string{fmt.Sprintf("Execution timed out after %.1f seconds.", Timeout.Seconds())}
	if printed := streams(outcome); len(printed) > 0 {
		texts = append(texts, strings.Join(printed, "\n\n"))
	}
	return texts
}

// outputText returns stdout, stderr and a sentence about the end of the program, separated by
// blank lines.
func outputText(outcome *orchestrator.Outcome) string {
	parts := streams(outcome)
	switch outcome.End.Stopped {
	case orchestrator.StoppedAtLimit, orchestrator.StoppedBySandbox:
		if failure := outcome.Envelope.Result.Error; failure != nil {
			parts = append(parts, failure.Message)
		}
	}
	if outcome.End == (orchestrator.End{}) {
		return strings.Join(append(parts, "Execution completed successfully."), "\n\n")
	}
	return strings.Join(append(parts, "Execution failed with return code "+strconv.Itoa(outcome.End.ExitCode)), "\n\n")
}

// streams returns the output of a program, each stream with its heading.
func streams(outcome *orchestrator.Outcome) []string {
	var parts []string
	for _, s := range []struct {
		heading, printed string
		cut              bool
	}{{"STDOUT:\n", outcome.Stdout, outcome.StdoutCut > 0}, {"STDERR:\n", outcome.Stderr, outcome.StderrCut > 0}} {
		switch printed := strings.TrimSpace(s.printed); {
		case s.cut:
			parts = append(parts, s.heading+s.printed+"\n\n"+truncated)
		case printed != "":
			parts = append(parts, s.heading+printed)
		}
	}
	return parts
}

// statusText returns the state of a job as text.
func statusText(job runs.JobStatus, limit time.Duration) string {
	head := "Status: " + string(job.State)
	switch job.State {
	case runs.JobQueued, runs.JobRunning:
		return head + "..."
	}
	return head + "\n\nResult:\n" + jobResult(job, limit)
}

func jobResult(job runs.JobStatus, limit time.Duration) string {
	switch {
	case job.State == runs.JobCancelled:
		return "Job was cancelled."
	case job.State == runs.JobTimedOut:
		return fmt.Sprintf("Background verification timed out after %s seconds. Process terminated to prevent "+
			"resource exhaustion.", wholeSeconds(limit))
	case job.Outcome == nil:
		problem, hint := whyNoRun(job.Err)
		return withHint(problem, hint)
	}
	return outputText(job.Outcome)
}

// wholeSeconds writes a time in seconds without decimals, rounded up.
func wholeSeconds(d time.Duration) string { return fmt.Sprintf("%.0f", math.Ceil(d.Seconds())) }

// ParseBackground parses the administrator's limit for jobs, in seconds. It returns
// DefaultBackground if the value is not a positive number, and at most MaxBackground.
func ParseBackground(value string) time.Duration {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	switch {
	case err != nil, math.IsNaN(seconds), math.IsInf(seconds, 0), seconds <= 0:
		return DefaultBackground
	case seconds >= MaxBackground.Seconds():
		return MaxBackground
	}
	return max(time.Duration(seconds*float64(time.Second)), time.Millisecond)
}

// BackgroundVariable is the environment variable of the administrator's limit for jobs.
const BackgroundVariable = "QWED_MCP_BACKGROUND_TIMEOUT"
