package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/verify"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// Gateway has the parts that the API of the risk gateway needs.
type Gateway struct {
	Decider *gateway.Gateway
	Jobs    *runs.Jobs
}

// OpenGateway opens the risk gateway of a system. Closing the system closes it. trusted is the
// administrator's switch. If the image with the engines is not built, the error has a hint.
func (s *System) OpenGateway(ctx context.Context, trusted bool) (*Gateway, error) {
	if err := s.verifier.Warm(); err != nil { // each request needs it for an analysis
		return nil, err
	}
	decider, err := gateway.New(gateway.Options{Admission: s.admission, Verifier: s.verifier, Recorder: decisions{s},
		Trusted: trusted, Logger: s.opts.Logger})
	if err != nil {
		return nil, err
	}
	book, err := runs.OpenJobBook(ctx, filepath.Join(s.directories.Home, "jobs"))
	if err != nil {
		return nil, err
	}
	jobs := runs.NewJobs(s.runs, &runs.JobOptions{Book: book, Logger: s.opts.Logger})
	s.undo.Add(jobs.Close)
	s.orchestrator.WarmScripts()
	return &Gateway{decider, jobs}, nil
}

// decisions keeps the decisions of the risk gateway in the audit log.
type decisions struct{ system *System }

// Record writes a decision to the audit log. A decision that allows is durable when it returns.
func (d decisions) Record(ctx context.Context, r gateway.Record) error {
	log := d.system.log
	record := audit.Record{
		Kind: audit.KindDecision, Identity: audit.IdentityOf(r.Caller),
		Act:    audit.Act{ToolName: r.Tool, ArgumentsHash: log.Hash(r.Arguments)},
		Ruling: audit.Ruling{Decision: "allow", VerificationID: r.Decision.VerificationID, Risk: r.Decision.RiskLevel},
		Effect: audit.Effect{ErrorType: r.Decision.ErrorCode},
	}
	record.RunID = r.RunID
	if r.Analysed {
		record.Engine, record.Image = "code", d.system.verifier.imageName()
	}
	if r.Decision.Verified {
		return log.Append(ctx, record)
	}
	record.Decision, record.Outcome = "deny", audit.OutcomeRefused
	return log.Note(ctx, record)
}

// Verifications asks the engines for callers and records the requests. It implements
// api.Verifications.
type Verifications struct{ system *System }

// Verifications returns the verifications, which can be used until the system is closed.
func (s *System) Verifications() Verifications { return Verifications{s} }

// Verify asks one engine. A verdict that cannot be recorded is withheld.
func (v Verifications) Verify(ctx context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error) {
	r.Caller = who.Account()
	verdict, err := v.system.verifier.Verify(ctx, r)
	if err != nil {
		return verify.Verdict{}, err
	}
	arguments, err := canon.JSON(r.Arguments)
	if err != nil { // numbers that are not doubles: hash the arguments as they were sent
		arguments = r.Arguments
	}
	record := audit.Record{
		Kind: audit.KindVerdict, Identity: audit.IdentityOf(who),
		Act:    audit.Act{Engine: r.Engine, ArgumentsHash: v.system.log.Hash(arguments)},
		Ruling: audit.Ruling{Verdict: string(verdict.Status)}, Effect: audit.Effect{Outcome: audit.OutcomeOK},
	}
	record.Image = v.system.verifier.imageName()
	if err := v.system.log.Note(ctx, record); err != nil {
		return verify.Verdict{}, fmt.Errorf("recording a verdict: %w", err)
	}
	return verdict, nil
}

// SkillManifestVariable names the manifest that CheckSkill checks.
const SkillManifestVariable = "QWED_SKILL_MANIFEST"

// maxManifest is the most bytes of a skill's manifest.
const maxManifest = 1 << 20

// CheckSkill returns an error if the manifest of a skill is not trusted. It runs the guard of
// qwed_mcp.security in a sandbox, because the manifest may be hostile.
func (s *System) CheckSkill(ctx context.Context, path string) error {
	manifest, err := readManifest(path)
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("the skill manifest %q: %w", path, err),
			Advice: SkillManifestVariable + " names a JSON object, as docs/gateway.md says"}
	}
	arguments, err := json.Marshal(map[string]json.RawMessage{"manifest": manifest})
	if err != nil {
		return fmt.Errorf("the skill manifest %q: %w", path, err)
	}
	verdict, err := s.verifier.Verify(ctx, verify.Request{Engine: skillEngine, Arguments: arguments})
	if err != nil {
		return fmt.Errorf("checking the skill manifest %q: %w", path, err)
	}
	if verdict.Status != verify.Verified || verdict.Engine != skillEngine {
		return &setup.Error{Err: fmt.Errorf("the skill manifest %q is not trusted: %s", path, verdict.Reason),
			Advice: "remove the skill, or unset " + SkillManifestVariable}
	}
	return nil
}

// skillEngine is the guard of qwed_mcp.security among the engines.
const skillEngine = "skill"

func readManifest(path string) (json.RawMessage, error) {
	file, err := store.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if len(raw) > maxManifest {
		return nil, fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	value, err := strictjson.Value([]byte(strings.TrimPrefix(string(raw), "\ufeff")))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, errors.New("it must be a JSON object, not an array or primitive")
	}
	return json.Marshal(value)
}
