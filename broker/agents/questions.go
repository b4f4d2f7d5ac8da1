package agents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/broker/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// maxOpenQuestions is how many questions of one agent are open at a time: people
// are not to be flooded.
const maxOpenQuestions = 8

// The states of a question.
const (
	questionOpen     = "open"
	questionApproved = "approved"
	questionRefused  = "refused"
)

// question is one that a person is asked about an action or a tool.
type question struct {
	questionKey
	id    string
	about approval.Question
}

// questionKey is what an answer is bound to.
type questionKey struct {
	agent, conversation string
	step                int64
	subject             string // digest of the action, its state, and the rules in force
}

// askedFor decides an action that a person must approve: as they answered, or
// with a question that waits for them.
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
	case !a.reserve(q):
		d.Decision, d.Error = Denied, refuse(CodeManyOpen, "%d questions of this agent wait for a person already", maxOpenQuestions)
	default:
		a.ask = &q
		d.Decision, d.ApprovalID = Pending, q.id
		return d, q.store(ctx, tx)
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
		// A run of its own: an answer for this question extends to no other.
		Asking:  approval.Asking{Principal: agent.ID, CallerKind: "agent", SessionID: key.conversation, RunID: q.id, CallID: q.id, Account: agent.Share()},
		Subject: approval.Subject{ServerID: "agent " + agent.Name, ToolName: a.act.Type, Arguments: arguments, PolicyVersion: s.opts.Rules.Version()},
		Grounds: approval.Grounds{Risk: why(a.risk), Rules: rules, Approve: []string{policies.Owner}},
	}
	return q
}

// answered is what the database has of a question; a zero state: nothing that counts.
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
		return answered{}, nil // it lapsed, or died with the process that asked
	}
	return r, nil
}

// answered uses up the answers to the step, now that it is committed.
func (a *attempt) answered(ctx context.Context, tx database.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM question WHERE agent = ? AND conversation = ? AND step = ?`,
		a.agent.ID, a.context.Conversation, a.context.Step)
	return err
}

func (q *question) store(ctx context.Context, tx database.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO question VALUES (?, ?, ?, ?, ?, ?, '', ?)`,
		q.agent, q.conversation, q.step, q.subject, q.id, questionOpen, q.about.Expires.Unix())
	return err
}

// reserve counts a question as open; false where the agent has too many.
func (s *Service) reserve(q question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[q.agent] >= maxOpenQuestions {
		return false
	}
	s.open[q.agent]++
	s.live[q.id] = nil
	return true
}

func (s *Service) release(q question) {
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

// forget takes back a question that is not going to be put.
func (a *attempt) forget() {
	if a.ask != nil {
		a.release(*a.ask)
		a.ask = nil
	}
}

// start puts a question and keeps its answer. It returns at once; ctx may end
// before there is an answer.
func (s *Service) start(ctx context.Context, q question) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[q.id] = end
	if s.closed {
		end()
	}
	s.asking.Go(func() {
		defer end()
		defer s.release(q)
		verdict, err := s.opts.Desk.Ask(ctx, q.about)
		if err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "asking a person about an agent's action", "error", err)
		}
		// The answer is kept also while the service closes: a person gave it.
		if err := s.keep(context.WithoutCancel(ctx), q, verdict, err); err != nil {
			s.opts.Logger.ErrorContext(ctx, "keeping a person's answer", "error", err)
		}
	})
}

// keep stores an answer. What was not answered is forgotten, so that it is asked again.
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
