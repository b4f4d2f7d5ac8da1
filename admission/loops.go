package admission

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The limits of a conversation.
const (
	maxSteps     = 50 // committed ones
	maxRepeats   = 2  // identical actions, one after the other
	maxUnchanged = 2  // identical actions on one state, within the window
	window       = 20 // approved actions on a state that are remembered
)

// conversationState is the stored state of a conversation. Only approved and pending actions change
// it.
type conversationState struct {
	Steps     int      `json:"steps"`     // committed
	Last      int64    `json:"last"`      // the highest committed step
	Recent    []acted  `json:"recent"`    // the newest actions, pending ones included
	Unchanged []string `json:"unchanged"` // fingerprints of the newest approved actions on their states
	// Called is the number of calls made by the conversation's code, and Calls are the newest of
	// them. They are stored in a separate row, because they do not count as steps.
	Called int64   `json:"called,omitempty"`
	At     int64   `json:"at,omitempty"` // time of the last act, in seconds since 1970
	Calls  []acted `json:"calls,omitempty"`
}

// acted is one action of a conversation.
type acted struct {
	Step        int64  `json:"step"`
	Fingerprint string `json:"fingerprint"`

	given bool // the caller gave the step's number
}

// idleTime is how long a session may be inactive before its next act starts a new conversation.
// Protocol revisions without sessions do not report the end of a session.
const idleTime = 30 * time.Minute

// isUnnamed reports whether the conversation is the session because the host named none.
func (e *evaluation) isUnnamed() bool { return e.context.Conversation == e.act.Conversation }

// repeated reads the conversation and returns the reason why the act must not be its next step, or
// nil.
func (e *evaluation) repeated(ctx context.Context, tx database.Tx) (*Error, error) {
	if err := e.load(ctx, tx); err != nil {
		return nil, err
	}
	now := e.now().Unix()
	if e.isUnnamed() && e.state.At != 0 && now-e.state.At >= int64(idleTime.Seconds()) {
		e.state = conversationState{}
	}
	e.state.At = now
	refused := e.state.check(e.at, e.onState, e.act.Nested)
	if refused != nil && refused.Code == CodeLength && e.isUnnamed() {
		refused.Message += ": connect again, or name a new conversation_id in the _meta of the request " +
			"(io.github.airlock-mcp/context)"
	}
	return refused, nil
}

// commit adds the act to its conversation, and removes the answers to questions about it.
func (e *evaluation) commit(ctx context.Context, tx database.Tx, approved bool) error {
	if approved && e.isAnnounced() && e.asks() {
		if err := e.useAnswer(ctx, tx); err != nil {
			return err
		}
	}
	if !e.isStep() {
		return nil
	}
	e.state.perform(&e.at, e.onState, e.act.Nested, approved)
	return e.store(ctx, tx)
}

// conversationKey is the key of a conversationState in the database's memo.
type conversationKey struct{ agent, conversation string }

func (e *evaluation) memoKey() conversationKey {
	return conversationKey{e.agent.ID, e.context.Conversation}
}

// clone returns a copy that shares no list.
func (s *conversationState) clone() conversationState {
	other := *s
	other.Recent, other.Calls = slices.Clone(s.Recent), slices.Clone(s.Calls)
	other.Unchanged = slices.Clone(s.Unchanged)
	return other
}

func (e *evaluation) load(ctx context.Context, tx database.Tx) error {
	if known, ok := database.MemoOf(tx).Get(e.memoKey()).(conversationState); ok {
		e.state = known.clone()
		return nil
	}
	e.state = conversationState{}
	var state string
	err := tx.QueryRowContext(ctx, `SELECT state FROM conversation WHERE agent = ? AND id = ?`, e.agent.ID,
		e.context.Conversation).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return strictjson.UnmarshalOpen([]byte(state), &e.state)
}

func (e *evaluation) store(ctx context.Context, tx database.Tx) error {
	state := e.state.clone()
	err := database.Later(ctx, tx, storedConversation{e.memoKey(), state})
	if err == nil {
		database.MemoOf(tx).Put(e.memoKey(), state)
	}
	return err
}

// storedConversation is a conversation whose state is stored.
type storedConversation struct {
	conversationKey
	state conversationState
}

// Key returns the conversation.
func (s storedConversation) Key() any { return s.conversationKey }

// After returns the later state.
func (s storedConversation) After(database.Write) database.Write { return s }

// Execute stores the state.
func (s storedConversation) Execute(ctx context.Context, tx database.Tx) error {
	state, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	_, err = database.ExecKeeping(ctx, tx,
		`INSERT INTO conversation VALUES (?, ?, ?) ON CONFLICT (agent, id) DO UPDATE SET state = excluded.state`,
		s.agent, s.conversation, string(state))
	return err
}

// check returns the reason why an act must not be done at this step, or nil. A step of 0 is the next
// one, and a call made by code takes no step.
func (s *conversationState) check(at acted, onState string, nested bool) *Error {
	last, steps, recent, again := s.Last, s.Steps, s.Recent, "do something else at this step"
	switch {
	case nested:
		last, steps, recent, again = at.Step-1, 0, s.Calls, "do something else first"
	case !at.given: // the number was not given, so it cannot be replayed
		if at.Step == 0 {
			at.Step = s.Last + 1
		}
		last = at.Step - 1
	}
	switch {
	case at.Step <= last:
		return refuse(CodeReplay, "step %d is not above step %d, which this conversation has committed: give each "+
			"action a higher step_number", at.Step, last)
	case steps >= maxSteps:
		return refuse(CodeLength, "the conversation has reached its limit of %d steps: begin a new one", maxSteps)
	case at.repeats(recent) >= maxRepeats:
		return refuse(CodeRepeated, "the same action was made %d times in a row: %s", maxRepeats, again)
	case onState != "" && s.unchanged(onState) >= maxUnchanged:
		return refuse(CodeUnchanged, "the same action was approved %d times while the state did not change: %s",
			maxUnchanged, again)
	}
	return nil
}

// perform adds an act and assigns its step if none was given. A pending act gets its number at
// once, so that no other act takes it.
func (s *conversationState) perform(at *acted, onState string, nested, approved bool) {
	if nested {
		if at.Step == 0 {
			s.Called++
			at.Step = s.Called
		}
		calls := conversationState{Recent: s.Calls, Unchanged: s.Unchanged}
		calls.remember(*at, onState, approved)
		s.Calls, s.Unchanged = calls.Recent, calls.Unchanged
		return
	}
	if at.Step == 0 {
		at.Step = s.Last + 1
	}
	last := s.Last
	s.remember(*at, onState, approved)
	if !at.given {
		s.Last = max(last, at.Step)
	}
}

// repeats returns the number of identical actions right before this one. A retry of the same step,
// as after a person's answer, does not count as a repetition.
func (at acted) repeats(recent []acted) int {
	n := 0
	for _, before := range slices.Backward(recent) {
		if before.Fingerprint != at.Fingerprint {
			break
		}
		if before.Step != at.Step {
			n++
		}
	}
	return n
}

func (s *conversationState) unchanged(onState string) int {
	n := 0
	for _, before := range s.Unchanged {
		if before == onState {
			n++
		}
	}
	return n
}

// remember adds the action. A pending action is added without its step.
func (s *conversationState) remember(at acted, onState string, approved bool) {
	s.Recent = slices.DeleteFunc(s.Recent, func(before acted) bool { return before.Step == at.Step })
	s.Recent = append(s.Recent, at)
	s.Recent = s.Recent[max(0, len(s.Recent)-maxRepeats-1):]
	if !approved {
		return
	}
	s.Steps++
	s.Last = at.Step
	if onState != "" {
		s.Unchanged = append(s.Unchanged, onState)
		s.Unchanged = s.Unchanged[max(0, len(s.Unchanged)-window):]
	}
}
