package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// executor makes runs whose output is determined by the code. They wait until the served
// console releases them, or until they are cancelled.
type executor struct{ s *served }

func (e executor) Check(orchestrator.Request) error { return nil }

func (e executor) EndSession(string) {}

func (e executor) Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	printed := orchestrator.Printed{Stdout: string(req.Code), Stderr: string(req.Code)}
	req.OnStart(orchestrator.Live{Printed: func() orchestrator.Printed { return printed }})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.s.parked:
	}
	return &orchestrator.Outcome{Envelope: orchestrator.Envelope{RunID: req.ID,
		Result: orchestrator.Result{OK: true, Data: json.RawMessage("42")}}, Printed: printed}, nil
}

// going starts a run that waits, and returns its ID when it has begun.
func (s *served) going(principal, code string) string {
	s.Helper()
	who := caller.Caller{Principal: principal, Kind: caller.User, Session: "ses_" + principal}
	run, err := s.runs.Start(s.Context(), orchestrator.Request{Language: "python", Code: []byte(code), Caller: who})
	if err != nil {
		s.Fatal(err)
	}
	changed, stop := run.Subscribe()
	defer stop()
	for run.Status().Began.IsZero() {
		<-changed
	}
	return run.ID()
}

// past writes a run to the audit log, with text in all foreign fields, and its recording. It
// returns the run's ID, which is generated if id is empty.
func (s *served) past(id, principal, text string) string {
	s.Helper()
	if id == "" {
		id = telemetry.NewID("run")
	}
	who := audit.Identity{RunID: id, SessionID: text, Principal: principal, CallerKind: "user", Profile: text,
		TraceID: text, CodeHash: text}
	act := audit.Act{CallID: "call_1", ServerID: text, ToolName: text,
		Arguments: encoded(map[string]string{text: text}), ParentID: id}
	ruling := audit.Ruling{Decision: "allow", Policies: []string{text}, Risk: text, Approval: "APPROVED",
		Approver: text}
	effect := audit.Effect{Outcome: audit.OutcomeError, ErrorType: text, ErrorSource: text, Limit: text, DurationMS: 5,
		ResultSize: 7, Redactions: map[string]int{text: 1}}
	for _, r := range []audit.Record{
		{Kind: audit.KindRunStart, Identity: who, RunFacts: audit.RunFacts{Language: text, Image: text, Snapshot: text,
			Host: text, Model: text}},
		{Kind: audit.KindApproval, Identity: who, Act: act, Ruling: ruling, Detail: text},
		{Kind: audit.KindApproval, Identity: who, Act: act, Ruling: ruling, Detail: text},
		{Kind: audit.KindIntent, Identity: who, Act: act, Ruling: ruling},
		{Kind: audit.KindOutcome, Identity: who, Act: act, Ruling: ruling, Effect: effect, Detail: text},
		{Kind: audit.KindViolation, Identity: who, Act: audit.Act{Engine: text},
			Ruling: audit.Ruling{Decision: text, Verdict: text, VerificationID: text},
			Effect: audit.Effect{ErrorType: text}, Detail: text},
		{Kind: audit.KindRunEnd, Identity: who, Effect: effect,
			RunFacts: audit.RunFacts{OutputDigest: text, ApprovalState: text, Calls: 1}, Detail: text},
	} {
		if err := s.log.Append(s.Context(), r); err != nil {
			s.Fatal(err)
		}
	}
	s.record(id, text)
	return id
}

// record writes a recording of a run.
func (s *served) record(id, text string) {
	s.Helper()
	recorder, err := s.records.Create(replay.Head{RunID: id, Language: "python", Code: text},
		func() ([]byte, error) { return []byte("[]"), nil })
	if err != nil {
		s.Logf("the run %.40q is not recorded: %v", id, err) // its name is not a valid file name
		return
	}
	envelope := encoded(map[string]any{"result": map[string]string{text: text}})
	if err := recorder.Close(replay.Output{Envelope: envelope, Stdout: text, Stderr: text}); err != nil {
		s.Fatal(err)
	}
}

func encoded(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprint("a test's own value: ", err))
	}
	return text
}

// asked is an open question and a channel for its answer.
type asked struct {
	approval.Question
	verdict chan approval.Verdict
}

// ask puts a question whose foreign fields are text, and returns when it is open.
func (s *served) ask(principal, text string) asked {
	s.Helper()
	q := asked{approval.Question{
		ID: telemetry.NewID("apr"), Asked: s.clock.Now(), Expires: time.Now().Add(time.Hour),
		Asking: approval.Asking{Principal: principal, CallerKind: "user", SessionID: text, RunID: text, CallID: text},
		Subject: approval.Subject{
			ServerID: text, ToolName: text, DefinitionDigest: text, PolicyVersion: text, Code: text,
			CodeHash: canon.Digest([]byte(text)), ClaimedLine: 1,
			Arguments: encoded(map[string]any{"path": text,
				"edits": []map[string]string{{"oldText": "a\n" + text, "newText": "a\nb" + text}}, text: text}),
		},
		Grounds: approval.Grounds{Risk: text, Flags: []string{text}, Rules: []string{text}, Approve: []string{"owner"}},
	}, make(chan approval.Verdict, 1)}
	open := make(chan struct{})
	stop := s.desk.Subscribe(func(e approval.Event) {
		if e.Question.ID == q.ID && e.Open {
			close(open)
		}
	})
	defer stop()
	go func() {
		verdict, _ := s.desk.Ask(s.Context(), q.Question) // an error ends the test's context
		q.verdict <- verdict
	}()
	<-open
	return q
}
