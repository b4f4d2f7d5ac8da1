package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/verify"
)

// execute rules on execute_python_code.
func (g *Gateway) execute(ctx context.Context, who caller.Caller, arguments map[string]any) ruling {
	code, ok := arguments["code"].(string)
	if !ok || strings.TrimSpace(code) == "" {
		return ruling{arguments: map[string]any{}, message: "Missing required non-empty 'code' argument.", code: NoCode}
	}
	background, given := false, false
	if value, present := arguments["background"]; present {
		if background, given = value.(bool); !given {
			return ruling{arguments: map[string]any{"code": code},
				message: "'background' must be a boolean when provided.", code: BadBackground}
		}
	}
	clean := map[string]any{"code": code, "background": background}
	if issues := g.analyse(ctx, who, code); issues != "" {
		return ruling{arguments: clean, message: "QWED blocked python execution: " + issues, code: UnsafeCode,
			analysed: true}
	}
	if !g.opts.Trusted {
		message := "Python execution was verified, but server policy keeps code execution disabled until " + Switch +
			"=true."
		return ruling{arguments: clean, message: message, code: SwitchedOff, analysed: true}
	}
	return ruling{arguments: clean, message: "Python execution was verified.", analysed: true}
}

// Limits on the analyser's text in a message: it parses hostile text.
const (
	maxIssues     = 20
	maxIssueBytes = 2 << 10
)

// analyse returns what is wrong with a program of a caller; "" for one that was found
// safe. An analyser that fails approves nothing.
func (g *Gateway) analyse(ctx context.Context, who caller.Caller, code string) string {
	const failed = "code safety verification failed: "
	// Code that does not parse, and has no dangerous pattern, may run into its SyntaxError.
	arguments, err := json.Marshal(map[string]any{"code": code, "language": "python", "accept_unparsed": true})
	if err != nil {
		return failed + "the program cannot be handed over"
	}
	ruling, grant, err := g.opts.Admission.Decide(ctx, admission.Act{Kind: admission.Verification,
		Agent: admission.AgentOf(who), Name: "verify_code", Engine: "code", Conversation: who.Session})
	switch {
	case err != nil:
		return failed + "the analyser could not be asked"
	case ruling.Error != nil:
		return ruling.Refusal()
	}
	limited, cancel := context.WithTimeout(ctx, g.opts.AnalysisTime)
	defer cancel()
	verdict, err := g.opts.Verifier.Verify(limited,
		verify.Request{Engine: "code", Arguments: arguments, Timeout: g.opts.AnalysisTime, Caller: who.Account()})
	asked := err == nil || errors.Is(err, verify.ErrInterrupted)
	if debit := grant.End(context.WithoutCancel(ctx), asked, 0); debit != nil {
		g.opts.Logger.ErrorContext(ctx, "what an agent's verification was debited could not be returned",
			slog.Any(telemetry.KeyError, debit))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed + "the analyser did not answer in time"
	case err != nil:
		return failed + "the analyser could not be asked"
	case verdict.Status == verify.Verified && verdict.Engine == "code":
		return ""
	}
	return issuesOf(verdict)
}

// issuesOf lists the findings of a verdict, else its reason.
func issuesOf(v verify.Verdict) string {
	var body struct {
		Vulnerabilities []struct {
			Message string `json:"message"`
		} `json:"vulnerabilities"`
	}
	// An invalid body has no findings: the reason stays.
	_ = strictjson.UnmarshalOpen(v.Body, &body)
	var issues []string
	for _, found := range body.Vulnerabilities[:min(len(body.Vulnerabilities), maxIssues)] {
		issues = append(issues, found.Message)
	}
	text := strings.Join(issues, "; ")
	if text == "" {
		text = v.Reason
	}
	if text == "" {
		text = "the program was not found safe"
	}
	return strings.ToValidUTF8(text[:min(len(text), maxIssueBytes)], "")
}

// uuid is the canonical form of RFC 9562, section 4, in lower case.
var uuid = lazyregexp.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// status rules on verification_status.
func status(arguments map[string]any) ruling {
	id, ok := arguments["job_id"].(string)
	if !ok || strings.TrimSpace(id) == "" {
		return ruling{arguments: map[string]any{}, message: "Missing required non-empty 'job_id' argument.",
			code: NoJobID}
	}
	clean := strings.ToLower(strings.TrimSpace(id))
	if !uuid.MatchString(clean) {
		return ruling{arguments: map[string]any{"job_id": id},
			message: "Invalid job_id format: a canonical UUID is required.", code: BadJobID}
	}
	return ruling{arguments: map[string]any{"job_id": clean}, message: "Status lookup was verified."}
}
