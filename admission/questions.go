package admission

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// maxOpenQuestions is the maximum number of open questions of one agent, so that people are not
// flooded.
const maxOpenQuestions = 8

// The states of a question. The column approver of an open one has the ID of the node that asks, which is empty without
// a cluster.
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

// people decides about an announcement that a person must approve: by the person's answer, or as
// pending with a question. For a run or a call, the caller asks.
func (e *evaluation) people(ctx context.Context, tx database.Tx) (Ruling, error) {
	r := e.ruling(Pending)
	if !e.isAnnounced() {
		return r, nil
	}
	why, what := "", "this action"
	if e.act.Kind == AnnouncedTool {
		r.Reason, what = e.approvalReason(), "this call"
		why = r.Reason + ", and "
	}
	q, err := e.newQuestion()
	if err != nil {
		return r, err
	}
	answered, err := e.answer(ctx, tx, &q)
	switch {
	case err != nil:
		return r, err
	case answered.state == questionApproved:
		r.Decision, r.Approver, r.Reason = Approved, answered.approver, ""
		return r, nil
	case answered.state == questionRefused:
		return e.denied(refuse(CodeRefused, "%sa person refused %s (%s)", why, what, answered.approver)), nil
	case answered.state == questionOpen:
		r.ApprovalID, e.asked = answered.id, e.liveQuestion(answered.id)
		return r, nil
	}
	refused, err := e.hold(ctx, tx, &q)
	if err != nil {
		return r, err
	}
	if refused != nil {
		refused.Message = why + refused.Message
		return e.denied(refused), nil
	}
	r.ApprovalID = q.id
	return r, q.store(ctx, tx, e.opts.Node.ID())
}

func (e *evaluation) questionKey() (questionKey, error) {
	subject, err := digest([]string{e.at.Fingerprint, e.onState, e.opts.Rules.Version()})
	return questionKey{e.agent.ID, e.context.Conversation, e.context.Step, subject}, err
}

// show writes the action for people, unless it has. Only if the agent changes between this and the transaction, the
// transaction does it.
func (e *evaluation) show() (err error) {
	if e.shown == nil {
		e.shown, err = json.Marshal(e.action)
	}
	return err
}

func (e *evaluation) newQuestion() (question, error) {
	key, err := e.questionKey()
	if err == nil {
		err = e.show()
	}
	if err != nil {
		return question{}, err
	}
	s, agent := e.agentGate, e.agent
	q := question{questionKey: key, id: telemetry.NewID("apr")}
	rules := make([]string, len(e.rules.Rules))
	for i, rule := range e.rules.Rules {
		rules[i] = rule.String()
	}
	now := s.now()
	q.about = approval.Question{
		ID: q.id, Asked: now, Expires: now.Add(s.opts.QuestionTime),
		// The run ID is unique, so that an answer to this question extends to no other.
		Asking: approval.Asking{Principal: agent.ID, CallerKind: "agent", Profile: agent.Profile,
			SessionID: q.conversation, RunID: q.id, CallID: q.id, Account: agent.Caller().Account(),
			Credentials: agent.ID},
		Subject: approval.Subject{ServerID: "agent " + agent.Name, ToolName: e.action.Type, Arguments: e.shown,
			PolicyVersion: s.opts.Rules.Version()},
		Grounds: approval.Grounds{Risk: e.why(), Rules: rules, Approve: e.rules.Approve, People: e.rules.People},
	}
	if len(q.about.Approve) == 0 { // the tool is dangerous
		q.about.Approve = []string{policies.Owner}
	}
	return q, nil
}

// answered is the state of a question in the database. A zero state means that no answer applies.
type answered struct{ state, id, approver string }

func (s *agentGate) answer(ctx context.Context, tx database.Tx, q *question) (answered, error) {
	var r answered
	var expires int64
	err := tx.QueryRowContext(
		ctx, `SELECT state, id, approver, expires FROM question
		WHERE agent = ? AND conversation = ? AND step = ? AND subject = ?`,
		q.agent, q.conversation, q.step, q.subject).Scan(&r.state, &r.id, &r.approver, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return answered{}, nil
	}
	if err != nil {
		return answered{}, err
	}
	live := r.state != questionOpen || s.liveQuestion(r.id) != nil
	if !live && r.approver != s.opts.Node.ID() {
		if live, err = cluster.Lives(ctx, tx, r.approver); err != nil {
			return answered{}, err
		}
	}
	if !live || !s.now().Before(time.Unix(expires, 0)) {
		return answered{}, nil // it expired, or the process that asked has ended
	}
	return r, nil
}

// useAnswer removes the answers to questions about the step, because it is committed, or the answer
// about the tool.
func (e *evaluation) useAnswer(ctx context.Context, tx database.Tx) error {
	key, err := e.questionKey()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM question WHERE agent = ? AND conversation = ? AND step = ?
		AND (? OR subject = ?)`, key.agent, key.conversation, key.step, e.isStep(), key.subject)
	return err
}

// store adds the question, and removes questions of the agent that can no longer be answered or
// used.
func (q *question) store(ctx context.Context, tx database.Tx, asker string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM question WHERE agent = ? AND expires < ?`, q.agent, q.about.Asked.Unix())
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO question (agent, conversation, step, subject, id, state, approver, expires)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (agent, conversation, step, subject) DO UPDATE SET id = excluded.id, state = excluded.state,
		approver = excluded.approver, expires = excluded.expires, approvers = '[]'`,
		q.agent, q.conversation, q.step, q.subject, q.id, questionOpen, asker, q.about.Expires.Unix())
	return err
}

// reserve reserves capacity for a question before the transaction.
func (e *evaluation) reserve() { e.place, e.full = e.opts.Desk.Reserve(e.agent.Caller().Account()) }

// hold counts a question as open. It returns a refusal if the reservation failed or the agent has
// too many open questions: a question that nobody can answer is not announced.
func (e *evaluation) hold(ctx context.Context, tx database.Tx, q *question) (*Error, error) {
	switch {
	case errors.Is(e.full, approval.ErrNobody):
		return refuse(CodeNobody, "no person can be asked here"), nil
	case e.place == nil:
		return refuse(CodeManyOpen,
			"too many questions of this owner's agents wait for a person: try again when one is answered"), nil
	}
	s := e.agentGate
	others, err := s.openElsewhere(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if others+s.open[q.agent] >= maxOpenQuestions {
		return refuse(CodeManyOpen, "%d questions of this agent wait for a person: try again when one is answered",
			maxOpenQuestions), nil
	}
	s.open[q.agent]++
	s.live[q.id] = &liveQuestion{opened: make(chan struct{})}
	e.ask = q
	return nil, nil
}

// openElsewhere returns how many questions of the agent other nodes ask.
func (s *agentGate) openElsewhere(ctx context.Context, tx database.Tx, q *question) (n int, err error) {
	if s.opts.Node == nil {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM question JOIN node ON node.id = question.approver
		WHERE agent = ? AND state = ? AND expires > ? AND approver <> ? AND `+cluster.Live,
		q.agent, questionOpen, q.about.Asked.Unix(), s.opts.Node.ID()).Scan(&n)
	return n, err
}

// dropQuestion removes a question that was not opened.
func (e *evaluation) dropQuestion() {
	if e.ask != nil {
		e.letGo(*e.ask)
		e.ask = nil
	}
}

// release releases the reservation of a question that was not opened.
func (e *evaluation) release() {
	e.dropQuestion()
	if e.place != nil {
		e.place.Release()
	}
}

// letGo counts a question as closed.
func (s *agentGate) letGo(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[q.id].close()
	delete(s.live, q.id)
	if s.open[q.agent]--; s.open[q.agent] <= 0 {
		delete(s.open, q.agent)
	}
}

// liveQuestion is a question that people can answer now or soon.
type liveQuestion struct {
	end    context.CancelFunc // nil before asking starts
	opened chan struct{}      // closed when people can answer, or never can
	exists bool               // people can answer, or could; set before opened is closed
	closed bool
}

// close closes opened. The caller must hold the mutex of the questions.
func (q *liveQuestion) close() {
	if !q.closed {
		q.closed = true
		close(q.opened)
	}
}

// liveQuestion returns an open question, or nil if this process does not ask it.
func (s *agentGate) liveQuestion(id string) *liveQuestion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// existing returns a ruling whose question people can answer. PENDING with another is a refusal,
// which is recorded as well.
func (e *evaluation) existing(ctx context.Context, r Ruling) (Ruling, error) {
	err := e.openQuestion(ctx)
	if err == nil && e.asked != nil { // another request of the agent asks
		select {
		case <-e.asked.opened:
		case <-ctx.Done():
			return Ruling{}, ctx.Err()
		}
	}
	if err == nil && (e.asked == nil || e.asked.exists) {
		return r, nil
	}
	if err != nil {
		e.logger.ErrorContext(ctx, "opening a question about an agent's action", slog.Any(telemetry.KeyError, err))
	}
	r = e.denied(refuse(CodeNobody, "no person can be asked at the moment: try again"))
	r.Error.Retryable = true
	return r, e.log.Note(ctx, e.decisionRecord(r))
}

var errServiceClosed = errors.New("the agent service is closed")

// openQuestion opens the announced question, if there is one, and stores its answer in the
// background. When it returns nil, people can answer the question.
func (e *evaluation) openQuestion(ctx context.Context) error {
	if e.ask == nil {
		return nil
	}
	s, q := e.agentGate, *e.ask
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	if err := s.beginAsking(q, end); err != nil {
		end()
		return err
	}
	wait, err := e.place.Open(q.about)
	if err != nil {
		end()
		s.asking.Done()
		// Without its row the question is asked again.
		return errors.Join(err, s.keep(context.WithoutCancel(ctx), q, approval.Verdict{}, err))
	}
	e.ask = nil
	s.announceOpen(q)
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
			s.logger.WarnContext(ctx, "asking a person about an agent's action", "error", err)
		}
		// The answer is stored even while the service closes, because a person gave it.
		if err := s.keep(context.WithoutCancel(ctx), q, verdict, err); err != nil {
			s.logger.ErrorContext(ctx, "keeping a person's answer", "error", err)
		}
	}()
	return nil
}

// beginAsking counts a question. Close ends it and waits for it.
func (s *agentGate) beginAsking(q question, end func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errServiceClosed
	}
	s.live[q.id].end = end
	s.asking.Add(1)
	return nil
}

// announceOpen is called when people can answer a question.
func (s *agentGate) announceOpen(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[q.id].exists = true
	s.live[q.id].close()
}

// keep stores an answer. An unanswered question is removed, so that it is asked again.
func (s *agentGate) keep(ctx context.Context, q question, verdict approval.Verdict, failed error) error {
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
		approvers, err := json.Marshal(verdict.Approvers)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			`UPDATE question SET state = ?, approver = ?, approvers = ?, expires = ? WHERE id = ?`, state, verdict.By,
			string(approvers), s.now().Add(s.opts.QuestionTime).Unix(), q.id)
		return err
	})
}

// dropLost removes the approval of the act if a person who gave it may not approve any more, so that the act is asked
// about again.
func (e *evaluation) dropLost(ctx context.Context) error {
	key, err := e.questionKey()
	if err != nil {
		return err
	}
	var id, stored string
	err = e.opts.Database.QueryRow(ctx, `SELECT id, approvers FROM question
		WHERE agent = ? AND conversation = ? AND step = ? AND subject = ? AND state = ?`,
		[]any{key.agent, key.conversation, key.step, key.subject, questionApproved}, &id, &stored)
	var approvers []caller.Caller
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		err = strictjson.UnmarshalOpen([]byte(stored), &approvers)
	}
	lost := func(who caller.Caller) bool { return e.opts.InForce == nil || !e.opts.InForce(who) }
	if err != nil || !slices.ContainsFunc(approvers, lost) {
		return err
	}
	return e.opts.Database.Exec(ctx, `DELETE FROM question WHERE id = ?`, id)
}
