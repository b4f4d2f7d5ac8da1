// Package gateway decides whether the risk gateway (airlock mcp --face gateway) carries
// out a call: it takes a tool and its arguments and returns a decision with a
// verification ID. It checks the policy table, the arguments, the safety of the code,
// the administrator's switch and the form of job IDs, in this order. It is defence in
// depth; the sandbox is the boundary.
package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/verify"
)

// Verifier judges programs. It is safe for concurrent use. If it returns an error instead of a
// verdict, the call is blocked.
type Verifier interface {
	Verify(ctx context.Context, r verify.Request) (verify.Verdict, error)
}

// Recorder keeps decisions: the audit log. It may be called concurrently. On an
// error the decision is not kept, and what it allows must not happen.
type Recorder interface {
	Record(ctx context.Context, r Record) error
}

// Record is a decision with what it is about.
type Record struct {
	Caller    caller.Caller
	RunID     string // of the run that the decision is about; empty for none
	Tool      string
	Arguments []byte // the normalised ones, in RFC 8785's form
	Decision  Decision
	// Analysed reports whether the engine `code` was asked.
	Analysed bool
}

// Options of a gateway. Admission, Verifier and Recorder are required.
type Options struct {
	Admission *admission.Service // decides whether a caller may analyse a program
	Verifier  Verifier
	Recorder  Recorder
	// Trusted is the administrator's switch: that programs which pass may run.
	Trusted bool
	// AnalysisTime is how long the analyser of a program may take; 0 means 15 s.
	AnalysisTime time.Duration
	Now          func() time.Time // nil means time.Now
	Logger       *slog.Logger     // nil discards
}

const (
	defaultAnalysisTime = 15 * time.Second
	instanceBytes       = 16
	nonceBytes          = 16
)

// Gateway decides about calls. Its methods may be called concurrently.
type Gateway struct {
	opts     Options
	risk     func(tool string) (policies.Risk, bool) // of the tools of the table: risk.OfGateway
	instance string                                  // of this process: no two gateways make one verification ID
}

// New returns a gateway.
func New(opts Options) (*Gateway, error) {
	if opts.Admission == nil || opts.Verifier == nil || opts.Recorder == nil {
		return nil, errors.New("a gateway needs admission, a verifier and a recorder")
	}
	if opts.AnalysisTime == 0 {
		opts.AnalysisTime = defaultAnalysisTime
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Gateway{opts, risk.OfGateway, random(instanceBytes)}, nil
}

// Call asks about one call of a tool.
type Call struct {
	Caller    caller.Caller
	RunID     string // of the run that it is to become; empty for none
	Tool      string
	Arguments []byte // JSON; a value that is not an object, or is ambiguous, has no arguments
}

// Decide decides about a call and records that. An error means that the decision
// could not be recorded, or that ctx is over: then nothing is allowed.
func (g *Gateway) Decide(ctx context.Context, c Call) (Decision, error) {
	if err := g.opts.Admission.AwaitTurn(ctx, c.Caller); err != nil {
		return Decision{}, err
	}
	given := objectOf(c.Arguments)
	risk, known := g.risk(c.Tool)
	ruling := ruling{arguments: given, message: fmt.Sprintf(
		"Unknown MCP tool '%s' is blocked by default.", shown(c.Tool)), code: UnknownTool}
	if known {
		ruling = g.rule(ctx, c, given)
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	decision, arguments, err := g.decision(c.Tool, risk, ruling)
	if err != nil {
		return Decision{}, err
	}
	if !decision.Verified && !ruling.analysed {
		g.opts.Admission.CountRefusal(c.Caller.Account()) // AwaitTurn delays further calls
	}
	record := Record{Caller: c.Caller, RunID: c.RunID, Tool: shown(c.Tool), Arguments: arguments, Decision: decision,
		Analysed: ruling.analysed}
	if err := g.opts.Recorder.Record(ctx, record); err != nil {
		return Decision{}, fmt.Errorf("recording the decision %s: %w", decision.VerificationID, err)
	}
	return decision, nil
}

// rule asks the handler of a tool of the table about a call with arguments.
func (g *Gateway) rule(ctx context.Context, c Call, arguments map[string]any) ruling {
	switch c.Tool {
	case ExecuteCode:
		return g.execute(ctx, c.Caller, arguments)
	case JobStatus:
		return status(arguments)
	}
	return ruling{arguments: arguments, message: fmt.Sprintf("MCP tool '%s' has no governance handler.", c.Tool),
		code: NoHandler}
}

// objectOf decodes arguments. It returns nil if they are not an object, or if the object has
// a name twice.
func objectOf(raw []byte) map[string]any {
	value, err := strictjson.Value(raw)
	if object, ok := value.(map[string]any); ok && err == nil {
		return object
	}
	return map[string]any{}
}

// decision puts a ruling into its form and returns its arguments in canonical form.
func (g *Gateway) decision(tool string, risk policies.Risk, r ruling) (Decision, []byte, error) {
	arguments, err := canon.Marshal(r.arguments)
	if err != nil || len(arguments) > maxArguments {
		// Numbers that no double is, or far more than any tool takes: only of unknown tools.
		r.arguments, arguments = map[string]any{}, []byte("{}")
	}
	hashed, err := canon.Marshal(map[string]any{
		"tool_name": tool, "normalized_arguments": r.arguments, "nonce": random(nonceBytes),
		"timestamp": g.opts.Now().UTC().Format(time.RFC3339Nano), "server_instance_id": g.instance,
	})
	if err != nil {
		return Decision{}, nil, fmt.Errorf("identifying the decision about %q: %w", tool, err)
	}
	sum := sha256.Sum256(hashed)
	d := Decision{
		Verified: r.code == "", Status: Allowed, RiskLevel: strings.ToLower(risk.Level()),
		VerificationID:      hex.EncodeToString(sum[:]),
		NormalizedArguments: r.arguments, Message: r.message, ErrorCode: r.code,
	}
	switch r.code {
	case "":
	case SwitchedOff:
		d.Status = BlockedByAdmin
	default:
		d.Status = Blocked
	}
	return d, arguments, nil
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b)
}
