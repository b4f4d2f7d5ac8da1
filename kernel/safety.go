package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/verify"
)

// MaxCode is the maximum size of code to judge or review, in bytes.
const MaxCode = 512 << 10

// Violation is one reason against running a program.
type Violation struct {
	Rule        string `json:"rule"`
	Severity    string `json:"severity"` // critical, high, medium or low
	Message     string `json:"message"`
	Alternative string `json:"alternative"`
	Line        int    `json:"line,omitempty"` // from 1
}

// Safety describes whether code is safe to run according to the rules.
type Safety struct {
	Safe         bool        `json:"safe"`
	Violations   []Violation `json:"violations"`
	Warnings     []string    `json:"warnings"`
	Language     string      `json:"language"`
	Characters   int         `json:"code_length"`
	RulesChecked int         `json:"rules_checked"`
	// BlockedReason and Alternative are those of the first violation.
	BlockedReason string `json:"blocked_reason,omitempty"`
	Alternative   string `json:"alternative,omitempty"`
}

// ErrNoVerifier is returned if no verification service is configured.
var ErrNoVerifier = errors.New("the verification service is not available")

// Judge decides whether code is safe to run. Code in an unsupported language, code that could not
// be analysed and code without a verdict are not safe. The error is a *Refusal, or that there was
// no verdict, and then the code is not safe.
func (s *Service) Judge(ctx context.Context, a Actor, code, language string) (Safety, error) {
	if len(code) > MaxCode {
		return Safety{}, refuse("the code has %d bytes, and %d can be judged", len(code), MaxCode)
	}
	if s.opts.Verifier == nil {
		return Safety{}, ErrNoVerifier
	}
	debit, err := s.admitVerification(ctx, a, "verify_code_safety", "code")
	if err != nil {
		return Safety{}, err
	}
	arguments, err := json.Marshal(map[string]string{"code": code, "language": language})
	if err != nil {
		return Safety{}, err
	}
	verdict, err := s.opts.Verifier.Verify(ctx, verify.Request{Engine: "code", Arguments: arguments,
		Caller: a.Account()})
	asked := err == nil || errors.Is(err, verify.ErrInterrupted)
	err = errors.Join(err, debit.End(context.WithoutCancel(ctx), asked, 0))
	if err != nil {
		return Safety{}, fmt.Errorf("judging code: %w", err)
	}
	safety, err := readSafety(verdict, code, language)
	if err != nil {
		return Safety{}, err
	}
	e := event{tool: "verify_code_safety", decision: allowed, hashed: []byte(code)}
	if !safety.Safe {
		e.decision, e.detail = denied, "rule "+safety.Violations[0].Rule
	}
	return safety, s.record(ctx, a, e)
}

// readSafety converts the verdict of the engine "code".
func readSafety(v verify.Verdict, code, language string) (Safety, error) {
	var body struct {
		Vulnerabilities []Violation `json:"vulnerabilities"`
		Evidence        struct {
			Language     string `json:"language"`
			RulesChecked int    `json:"rules_checked"`
		} `json:"evidence"`
	}
	if err := strictjson.UnmarshalOpen(v.Body, &body); err != nil {
		return Safety{}, fmt.Errorf("reading the verdict on code: %w", err)
	}
	safety := Safety{
		Safe: v.Status == verify.Verified, Violations: body.Vulnerabilities, Warnings: []string{},
		Language:   body.Evidence.Language,
		Characters: utf8.RuneCountInString(code), RulesChecked: body.Evidence.RulesChecked,
	}
	if safety.Language == "" {
		safety.Language = strings.ToLower(strings.TrimSpace(language))
	}
	if !safety.Safe && len(safety.Violations) == 0 {
		safety.Violations = []Violation{noVerdict(v)}
	}
	if safety.Safe && len(safety.Violations) > 0 {
		return Safety{}, errors.New("a verdict on code contradicts itself")
	}
	if safety.Safe {
		safety.Violations = []Violation{}
		return safety, nil
	}
	for i := range safety.Violations {
		if safety.Violations[i].Alternative == "" {
			safety.Violations[i].Alternative = "Leave this out, or ask for a tool that does it"
		}
	}
	safety.BlockedReason, safety.Alternative = safety.Violations[0].Message, safety.Violations[0].Alternative
	return safety, nil
}

// noVerdict returns the violation for code that was not judged.
func noVerdict(v verify.Verdict) Violation {
	if v.Status == verify.Unknown {
		return Violation{Rule: "unsupported_language", Severity: "high", Message: v.Reason,
			Alternative: "Use one of python, javascript, typescript, sql, shell"}
	}
	return Violation{Rule: "not_analysed", Severity: "high", Message: v.Reason,
		Alternative: "Make the program smaller or simpler"}
}
