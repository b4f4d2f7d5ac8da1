package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Schema makes the tables through which the nodes of a cluster share questions.
const Schema = `
CREATE TABLE posted_question (
	id       TEXT PRIMARY KEY,
	node     TEXT NOT NULL, -- ID of the node that asks
	question TEXT NOT NULL, -- JSON of Question
	progress TEXT NOT NULL,
	escalated   TEXT NOT NULL, -- the role that may answer in place of the owner; empty: none
	credentials TEXT NOT NULL, -- Asking.Credentials
	outcome  TEXT NOT NULL, -- a sentence; empty while it is open
	changed  INTEGER NOT NULL -- seconds since 1970
) STRICT;
CREATE TABLE posted_answer (
	id       TEXT PRIMARY KEY,
	question TEXT NOT NULL,
	node     TEXT NOT NULL, -- ID of the node that asks
	response TEXT NOT NULL, -- JSON of Response
	taken    INTEGER NOT NULL, -- 1 when that node has begun to apply it
	result   TEXT NOT NULL, -- JSON of answerResult; empty until then
	made     INTEGER NOT NULL -- seconds since 1970
) STRICT;
CREATE INDEX posted_answer_node ON posted_answer (node, taken);`

const (
	// shareInterval is how often a node with open questions looks for answers, and a node that has answered looks for
	// the result.
	shareInterval = 150 * time.Millisecond
	// resultTimeout is how long a node waits for the node that asked, and listTimeout for a list of questions.
	resultTimeout, listTimeout = 15 * time.Second, 3 * time.Second
	// keptTime is how long, in seconds, closed questions and answers are kept for their outcome.
	keptTime = 3600
)

// errNoNode is returned if the node that asked does not take an answer.
var errNoNode = errors.New("the node that asked does not answer: try again")

// share makes the questions of a desk visible to the other nodes of a cluster, and passes answers between them. The
// desk that asks decides about each answer, so exactly one counts.
type share struct {
	desk    *Desk
	db      *database.DB
	node    string // ID of this node
	timeout time.Duration
	stop    func()
	running sync.WaitGroup // run, and each extend

	published map[string]string // the progress and the escalation of the published questions by ID; used by run only
}

// Share shares the questions with the other nodes of a cluster until stop is called. node is the ID of this node.
func (d *Desk) Share(ctx context.Context, db *database.DB, node string) (stop func()) {
	s := &share{desk: d, db: db, node: node, timeout: resultTimeout, published: map[string]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { s.run(ctx) })
	s.stop = sync.OnceFunc(func() {
		d.mu.Lock()
		d.shared.CompareAndSwap(s, nil) // from now on nothing begins extend
		d.mu.Unlock()
		cancel()
		s.running.Wait()
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared.Store(s)
	return s.stop
}

// extend stores the grant of a verdict, and closes the question afterwards, so that the next call of its run is
// covered. If the grant cannot be stored, the verdict is for the call alone. The caller must hold the mutex of the
// desk.
func (s *share) extend(o *openQuestion, g Grant) {
	s.running.Go(func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
		defer cancel()
		rows := grantRows{s.db}
		err := rows.add(ctx, g, g.Given)
		if err == nil {
			s.desk.mu.Lock()
			answered := s.desk.coverLocked(g)
			s.desk.mu.Unlock()
			if answered > 0 {
				_, err = rows.use(ctx, g.ID, answered)
			}
		}
		if err != nil {
			s.desk.opts.Logger.WarnContext(ctx, "an approval for further calls could not be stored in the database",
				slog.String("grant", g.ID), slog.Any(telemetry.KeyError, err))
		}
	})
}

// name returns the name of this node.
func (s *share) name() string {
	name, _, _ := strings.Cut(s.node, "/")
	return name
}

func (s *share) run(ctx context.Context) {
	tick := time.NewTicker(shareInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		answers, err := s.sync(ctx)
		for _, a := range answers {
			err = errors.Join(err, s.apply(ctx, a))
		}
		if err != nil && ctx.Err() == nil {
			s.desk.opts.Logger.WarnContext(ctx, "questions could not be shared with other nodes",
				slog.Any(telemetry.KeyError, err))
		}
	}
}

// answer is an answer that another node has accepted from a person.
type answer struct {
	id       string
	response Response
}

// sync stores what has changed, and takes the answers to questions of this node.
func (s *share) sync(ctx context.Context) (answers []answer, err error) {
	open := map[string]Posted{}
	for _, q := range s.desk.posted() {
		open[q.ID] = q
	}
	if len(open)+len(s.published) == 0 {
		return nil, nil
	}
	now := maps.Clone(s.published)
	err = s.db.Update(ctx, func(tx database.Tx) error {
		answers = nil
		if err := s.publish(ctx, tx, open, now); err != nil {
			return err
		}
		answers, err = s.take(ctx, tx)
		return err
	})
	if err == nil {
		s.published = now
	}
	return answers, err
}

// publish stores the open questions, and the outcomes of those that are not open any more.
func (s *share) publish(ctx context.Context, tx database.Tx, open map[string]Posted, now map[string]string) error {
	for id, q := range open {
		was, known := s.published[id]
		state := q.Progress + "\n" + q.Escalated
		if known && was == state {
			continue
		}
		data, err := canon.Verbatim(q.Question)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO posted_question VALUES (?, ?, ?, ?, ?, ?, '', unixepoch())
				ON CONFLICT (id) DO UPDATE SET progress = excluded.progress, escalated = excluded.escalated`, id, s.node,
				string(data), q.Progress, q.Escalated, q.Credentials)
		}
		if err != nil {
			return err
		}
		now[id] = state
	}
	for id := range s.published {
		if _, isOpen := open[id]; isOpen {
			continue
		}
		if _, err := tx.ExecContext(ctx, `UPDATE posted_question SET outcome = ?, changed = unixepoch() WHERE id = ?`,
			s.desk.outcomeOf(id), id); err != nil {
			return err
		}
		for _, old := range []string{`DELETE FROM posted_question WHERE outcome <> '' AND changed < unixepoch() - ?`,
			`DELETE FROM posted_answer WHERE made < unixepoch() - ?`} {
			if _, err := tx.ExecContext(ctx, old, keptTime); err != nil {
				return err
			}
		}
		delete(now, id)
	}
	return nil
}

// take takes the answers to questions of this node. Afterwards they cannot be withdrawn.
func (s *share) take(ctx context.Context, tx database.Tx) (answers []answer, err error) {
	answers, err = database.RowsIn(ctx, tx, `SELECT id, response FROM posted_answer WHERE node = ? AND taken = 0
		ORDER BY made, id`, []any{s.node}, func(rows *sql.Rows) (a answer, err error) {
		var text string
		if err := rows.Scan(&a.id, &text); err != nil {
			return a, err
		}
		if err := strictjson.Unmarshal([]byte(text), &a.response); err != nil {
			return a, fmt.Errorf("reading answer %q: %w", a.id, err)
		}
		return a, nil
	})
	if err != nil || len(answers) == 0 {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE posted_answer SET taken = 1 WHERE node = ? AND taken = 0`, s.node)
	return answers, err
}

// answerResult is the result of an answer.
type answerResult struct {
	Kind   int    `json:"kind"` // 0: it was accepted; otherwise the position in answerErrors, from 1
	Detail string `json:"detail"`
}

// answerErrors are the errors of Desk.Answer, in an order that must not change.
func answerErrors() []error {
	return []error{ErrClosed, ErrChanged, ErrNeedsValues, ErrNotAsked, ErrAgreed, ErrNoPerson, ErrExtent, ErrOwn}
}

// apply answers a question of this node, and stores the result.
func (s *share) apply(ctx context.Context, a answer) error {
	var result answerResult
	if err := s.desk.answerLocal(a.response); err != nil {
		result.Kind, result.Detail = len(answerErrors())+1, err.Error()
		for i, kind := range answerErrors() {
			if errors.Is(err, kind) {
				result.Kind = i + 1
			}
		}
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return s.db.Exec(ctx, `UPDATE posted_answer SET result = ? WHERE id = ?`, string(text), a.id)
}

// ofOthers is the beginning of a query of the questions of other nodes that live.
const ofOthers = `SELECT posted_question.question, progress, escalated, credentials, outcome, posted_question.node
	FROM posted_question
	JOIN node ON node.id = posted_question.node AND ` + cluster.Live + `
	WHERE posted_question.node <> ? `

func (s *share) query(ctx context.Context, tx database.Tx, rest string, args ...any) ([]remote, error) {
	args = append([]any{s.node}, args...)
	return database.RowsIn(ctx, tx, ofOthers+rest, args, func(rows *sql.Rows) (r remote, err error) {
		var text string
		if err := rows.Scan(&text, &r.Progress, &r.Escalated, &r.Credentials, &r.outcome, &r.node); err != nil {
			return r, err
		}
		if err := strictjson.Unmarshal([]byte(text), &r.Question); err != nil {
			return r, fmt.Errorf("reading a question of node %q: %w", r.node, err)
		}
		r.Node, _, _ = strings.Cut(r.node, "/")
		r.Digest = canon.Digest([]byte(text))
		return r, nil
	})
}

// remote is a question of another node.
type remote struct {
	Posted
	outcome, node string
}

// list returns the open questions of other nodes. Those that cannot be read are logged.
func (s *share) list() (open []Posted) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	var found []remote
	err := s.db.Query(ctx, func(tx database.Tx) (err error) {
		found, err = s.query(ctx, tx, "AND outcome = ''")
		return err
	})
	if err != nil {
		s.desk.opts.Logger.WarnContext(ctx, "the questions of other nodes could not be read",
			slog.Any(telemetry.KeyError, err))
	}
	for _, r := range found {
		open = append(open, r.Posted)
	}
	return open
}

// find is Desk.Find for a question of another node.
func (s *share) find(id string) (Posted, Asking, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	var found []remote
	err := s.db.Query(ctx, func(tx database.Tx) (err error) {
		found, err = s.query(ctx, tx, "AND posted_question.id = ?", id)
		return err
	})
	switch {
	case err != nil:
		return Posted{}, Asking{}, err
	case len(found) == 0:
		return Posted{}, Asking{}, fmt.Errorf("finding question %q: %w", id, ErrClosed)
	}
	asking := (&openQuestion{question: found[0].Question, escalated: found[0].Escalated}).asking()
	if found[0].outcome != "" {
		return Posted{}, asking, closedError(found[0].outcome)
	}
	return found[0].Posted, asking, nil
}

// answer passes an answer to the node that asked, and returns the error of its Desk.Answer.
func (s *share) answer(r Response) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	id := telemetry.NewID("ans")
	err = s.db.Update(ctx, func(tx database.Tx) error {
		found, err := s.query(ctx, tx, "AND posted_question.id = ?", r.ID)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return closedError("the question is not open")
		case found[0].outcome != "":
			return closedError(found[0].outcome)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO posted_answer VALUES (?, ?, ?, ?, 0, '', unixepoch())`, id, r.ID,
			found[0].node, string(text))
		return err
	})
	if err != nil {
		return err
	}
	return s.result(ctx, id)
}

// result waits for the result of an answer. An answer that no node has taken is withdrawn.
func (s *share) result(ctx context.Context, id string) error {
	tick := time.NewTicker(shareInterval)
	defer tick.Stop()
	for {
		var text string
		err := s.db.QueryRow(ctx, `SELECT result FROM posted_answer WHERE id = ?`, []any{id}, &text)
		if err == nil && text != "" {
			return errorOf(text)
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		return s.withdraw(context.WithoutCancel(ctx), id)
	}
}

func (s *share) withdraw(ctx context.Context, id string) error {
	var text string
	var gone bool
	err := s.db.Update(ctx, func(tx database.Tx) error {
		gone = false
		if _, err := tx.ExecContext(ctx, `DELETE FROM posted_answer WHERE id = ? AND taken = 0`, id); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, `SELECT result FROM posted_answer WHERE id = ?`, id).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			gone = true
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case gone:
		return errNoNode
	case text == "":
		return errors.New("the node that asked has ended while it took the answer: look at the audit log of that node")
	}
	return errorOf(text)
}

// errorOf returns the error of Desk.Answer on the node that asked.
func errorOf(text string) error {
	var result answerResult
	if err := strictjson.Unmarshal([]byte(text), &result); err != nil {
		return fmt.Errorf("reading the result of an answer: %w", err)
	}
	kinds := answerErrors()
	switch {
	case result.Kind == 0:
		return nil
	case result.Kind <= len(kinds):
		return detailed{kinds[result.Kind-1], result.Detail}
	}
	return errors.New(result.Detail)
}
