package broker

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// keep adds a call and its answer to the run's recording, if there is one. held is the number of
// credentials known to Airlock when the result in the answer was redacted. A recording without one of
// the run's calls is abandoned. Its reason is logged once, at the end of the run.
func (s *RunCalls) keep(number int, call Call, answer Answer, held int) {
	if s.opts.Recording == nil {
		return
	}
	if answer.Error != nil && answer.Error.File != "" {
		s.opts.Recording.Abandon(errKept)
		return
	}
	text, err := s.keptAnswer(answer, held)
	if err == nil {
		err = s.opts.Recording.Answered(replay.Exchange{
			Number: number, ServerID: call.ServerID, Name: call.Name, Arguments: s.recorded(call.Arguments),
			Answer: text,
		})
	}
	if err != nil {
		s.opts.Recording.Abandon(err)
	}
}

// keptAnswer returns the recorded form of an answer, without credentials held by Airlock. A result
// is redacted again only if Airlock has got more credentials since.
func (s *RunCalls) keptAnswer(answer Answer, held int) (json.RawMessage, error) {
	if answer.OK && answer.Error == nil && len(answer.Raw) > 0 && held == s.opts.Redactor.HeldCount() {
		return slices.Concat([]byte(`{"ok":true,"raw":`), answer.Raw, []byte{'}'}), nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	text, _, err = s.opts.Redactor.HeldJSON(text)
	return text, err
}

// recorded returns the recorded form of arguments, without credentials held by Airlock if they are
// valid JSON.
func (s *RunCalls) recorded(arguments json.RawMessage) json.RawMessage {
	cleaned, _, err := s.opts.Redactor.HeldJSON(arguments)
	if err != nil {
		return arguments
	}
	return cleaned
}

// replayed answers a call from the run's recording. The server is not called, so there is no
// intent; the outcome names the recording as the source.
func (a *attempt) replayed(ctx context.Context) Answer {
	if fail := a.slot(ctx); fail != nil {
		return a.answerError(fail)
	}
	var answer Answer
	recorded, diverged := a.run.opts.Player.Call(a.call.ServerID, a.call.Name, a.run.recorded(a.call.Arguments))
	r := a.record(audit.KindOutcome)
	r.Outcome, r.Detail = audit.OutcomeOK, "answered from a recording"
	switch {
	case diverged != nil:
		answer = a.answerError(failf(errortype.Sandbox, "the replay diverged: %s", diverged))
		r.Outcome, r.ErrorType, r.Detail = audit.OutcomeRefused, errortype.Sandbox, "the replay diverged"
	case strictjson.UnmarshalOpen(recorded, &answer) != nil:
		answer = a.answerError(failf(errortype.Sandbox, "the recording is damaged"))
		r.Outcome, r.ErrorType, r.Detail = audit.OutcomeRefused, errortype.Sandbox, "the recording is damaged"
	}
	r.ResultSize = int64(len(answer.Raw))
	if err := a.broker.recorder.Note(ctx, r); err != nil {
		return a.answerError(unrecorded(err))
	}
	a.run.received(len(answer.Raw))
	a.result = answer.Raw
	if fail := a.keepUnread(ctx); fail != nil {
		return a.answerError(fail)
	}
	return answer
}
