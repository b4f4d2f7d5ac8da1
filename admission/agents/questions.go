package agents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// maxOpenQuestions is the maximum number of open questions of one agent, so that people are not
// flooded.
const maxOpenQuestions = 8

// The states of a question.
const (
	questionOpen     = "open"
	questionApproved = "approved"
	questionRefused  = "refused"
)

// question is a question to a person about an action or a tool.
type question struct {
	questionKey
	id    string
	about approval.Question
}

// questionKey identifies the request that an answer applies to.
type questionKey struct {
	agent, conversation string
	step                int64
	subject             string // digest of the action, its state, and the active rules
}

// askedFor decides about an action that a person must approve: by the person's answer, or as
// pending with a question.
func (a *attempt) askedFor(ctx context.Context, tx database.Tx, d Decision) (Decision, error) {
	q, err := a.newQuestion()
	if err != nil {
		return d, err
	}
	answered, err := a.answer(ctx, tx, &q)
	switch {
	case err != nil:
		return d, err
	case answered.state == questionApproved:
		d.Approver = answered.approver
		return d, nil
	case answered.state == questionRefused:
		d.Decision, d.Error = Denied, refuse(CodeRefused, "a person refused this action (%s)", answered.approver)
	case answered.state == questionOpen:
		d.Decision, d.ApprovalID = Pending, answered.id
		return d, nil
	default:
		if d.Error = a.hold(&q); d.Error == nil {
			d.Decision, d.ApprovalID = Pending, q.id
			return d, q.store(ctx, tx)
		}
		d.Decision = Denied
	}
	return d, a.ledger.Record(ctx, tx, a.accounts(), budget.Charge{})
}

func (a *attempt) newQuestion() (question, error) {
	subject, err := digest([]string{a.at.Fingerprint, a.onState, a.opts.Rules.Version()})
	if err != nil {
		return question{}, err
	}
	arguments, err := json.Marshal(a.action)
	if err != nil {
		return question{}, err
	}
	return a.newQuestionOf(questionKey{a.agent.ID, a.context.Conversation, a.context.Step, subject}, arguments), nil
}

func (a *attempt) newQuestionOf(key questionKey, arguments json.RawMessage) question {
	s, agent := a.Service, a.agent
	q := question{questionKey: key, id: telemetry.NewID("apr")}
	rules := make([]string, len(a.rules.Rules))
	for i, rule := range a.rules.Rules {
		rules[i] = rule.String()
	}
	now := s.opts.Now()
	q.about = approval.Question{
		ID: q.id, Asked: now, Expires: now.Add(s.opts.QuestionTime),
		// The run ID is unique, so that an answer to this question extends to no other.
		Asking:  approval.Asking{Principal: agent.ID, CallerKind: "agent", Profile: agent.Profile, SessionID: key.conversation, RunID: q.id, CallID: q.id, Account: agent.Share()},
		Subject: approval.Subject{ServerID: "agent " + agent.Name, ToolName: a.act.Type, Arguments: arguments, PolicyVersion: s.opts.Rules.Version()},
		Grounds: approval.Grounds{Risk: why(a.risk), Rules: rules, Approve: []string{policies.Owner}},
	}
	return q
}

// answered is the state of a question in the database. A zero state means that no answer applies.
type answered struct{ state, id, approver string }

func (s *Service) answer(ctx context.Context, tx database.Tx, q *question) (answered, error) {
	var r answered
	var expires int64
	err := tx.QueryRowContext(ctx, `SELECT state, id, approver, expires FROM question WHERE agent = ? AND conversation = ? AND step = ? AND subject = ?`,
		q.agent, q.conversation, q.step, q.subject).Scan(&r.state, &r.id, &r.approver, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return answered{}, nil
	}
	if err != nil {
		return answered{}, err
	}
	if !s.opts.Now().Before(time.Unix(expires, 0)) || r.state == questionOpen && !s.isLive(r.id) {
		return answered{}, nil // it expired, or the process that asked has ended
	}
	return r, nil
}

// answered marks the answers to the step as used, because the step is committed.
func (a *attempt) answered(ctx context.Context, tx database.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM question WHERE agent = ? AND conversation = ? AND step = ?`,
		a.agent.ID, a.context.Conversation, a.context.Step)
	return err
}

// store adds the question, and removes questions of the agent that can no longer be answered or
// used.
func (q *question) store(ctx context.Context, tx database.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM question WHERE agent = ? AND expires < ?`, q.agent, q.about.Asked.Unix())
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO question VALUES (?, ?, ?, ?, ?, ?, '', ?)`,
		q.agent, q.conversation, q.step, q.subject, q.id, questionOpen, q.about.Expires.Unix())
	return err
}

// reserve reserves capacity for a question before the transaction.
func (a *attempt) reserve() { a.place, a.full = a.opts.Desk.Reserve(a.agent.Share()) }

// hold counts a question as open. It returns a refusal if the reservation failed or the agent has
// too many open questions: a question that nobody can answer is not announced.
func (a *attempt) hold(q *question) *Error {
	switch {
	case errors.Is(a.full, approval.ErrNobody):
		return refuse(CodeNobody, "no person can be asked here")
	case a.place == nil:
		return refuse(CodeManyOpen, "too many questions of this owner's agents wait for a person: try again when one is answered")
	}
	s := a.Service
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[q.agent] >= maxOpenQuestions {
		return refuse(CodeManyOpen, "%d questions of this agent wait for a person: try again when one is answered", maxOpenQuestions)
	}
	s.open[q.agent]++
	s.live[q.id] = nil
	a.ask = q
	return nil
}

// release releases the reservation of a question that was not opened.
func (a *attempt) release() {
	if a.ask != nil {
		a.letGo(*a.ask)
		a.ask = nil
	}
	if a.place != nil {
		a.place.Release()
	}
}

// letGo counts a question as closed.
func (s *Service) letGo(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, q.id)
	if s.open[q.agent]--; s.open[q.agent] <= 0 {
		delete(s.open, q.agent)
	}
}

func (s *Service) isLive(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, live := s.live[id]
	return live
}

var errServiceClosed = errors.New("the agent service is closed")

// openQuestion opens the announced question, if there is one, and stores its answer in the
// background. When it returns nil, people can answer the question.
func (a *attempt) openQuestion(ctx context.Context) error {
	if a.ask == nil {
		return nil
	}
	s, q := a.Service, *a.ask
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	if err := s.beginAsking(q, end); err != nil {
		end()
		return err
	}
	wait, err := a.place.Open(q.about)
	if err != nil {
		end()
		s.asking.Done()
		return err // the question's row in the database is ignored, because the question is not live
	}
	a.ask = nil
	go func() {
		defer s.asking.Done()
		defer end()
		defer s.letGo(q)
		ctx, stop := s.opts.While(ctx, caller.Caller{
			Principal: q.agent, Kind: caller.Agent, Session: q.agent, Credentials: []caller.Credential{{ID: q.agent}},
		})
		defer stop()
		verdict, err := wait(ctx)
		if err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "asking a person about an agent's action", "error", err)
		}
		// The answer is stored even while the service closes, because a person gave it.
		if err := s.keep(context.WithoutCancel(ctx), q, verdict, err); err != nil {
			s.opts.Logger.ErrorContext(ctx, "keeping a person's answer", "error", err)
		}
	}()
	return nil
}

// beginAsking counts a question. Close ends it and waits for it.
func (s *Service) beginAsking(q question, end func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errServiceClosed
	}
	s.live[q.id] = end
	s.asking.Add(1)
	return nil
}

// keep stores an answer. An unanswered question is removed, so that it is asked again.
func (s *Service) keep(ctx context.Context, q question, verdict approval.Verdict, failed error) error {
	return s.opts.Database.Update(ctx, func(tx database.Tx) error {
		state := questionRefused
		switch {
		case failed == nil && verdict.Answer == approval.Yes:
			state = questionApproved
		case failed == nil && verdict.Answer == approval.No:
		default:
			_, err := tx.ExecContext(ctx, `DELETE FROM question WHERE id = ?`, q.id)
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE question SET state = ?, approver = ?, expires = ? WHERE id = ?`,
			state, verdict.By, s.opts.Now().Add(s.opts.QuestionTime).Unix(), q.id)
		return err
	})
}
