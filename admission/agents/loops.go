package agents

import (
	"slices"
	"strings"
)

// Codes of loops and replays.
const (
	CodeLength    = "QWED-AGENT-LOOP-001"
	CodeReplay    = "QWED-AGENT-LOOP-002"
	CodeRepeated  = "QWED-AGENT-LOOP-003"
	CodeUnchanged = "QWED-AGENT-LOOP-004"
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
	// them. They are in a separate row, because they take no step.
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

// check returns the reason why the action must not be done at this step, or nil.
func (s *conversationState) check(at acted, onState string) *Error {
	switch {
	case at.Step <= s.Last:
		return refuse(CodeReplay, "step %d is not above step %d, which this conversation has committed: give each action a higher step_number", at.Step, s.Last)
	case s.Steps >= maxSteps:
		return refuse(CodeLength, "the conversation has its %d steps: begin a new one", maxSteps)
	case s.repeats(at) >= maxRepeats:
		return refuse(CodeRepeated, "the same action was made %d times in a row: do something else at this step", maxRepeats)
	}
	if onState != "" && s.unchanged(onState) >= maxUnchanged {
		return refuse(CodeUnchanged, "the same action was approved %d times while the state did not change: do something else at this step", maxUnchanged)
	}
	return nil
}

// checkAct is like check for an act: a step of 0 is the next one, and a call made by code takes no
// step.
func (s *conversationState) checkAct(at acted, onState string, nested bool) *Error {
	if nested {
		steps := conversationState{Last: at.Step - 1, Recent: s.Calls, Unchanged: s.Unchanged}
		if refused := steps.check(at, onState); refused != nil {
			refused.Message = strings.ReplaceAll(refused.Message, "do something else at this step", "do something else first")
			return refused
		}
		return nil
	}
	if at.given {
		return s.check(at, onState)
	}
	if at.Step == 0 {
		at.Step = s.Last + 1
	}
	steps := *s
	steps.Last = at.Step - 1 // its number was not given, so it cannot be replayed
	return steps.check(at, onState)
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
func (s *conversationState) repeats(at acted) int {
	n := 0
	for _, before := range slices.Backward(s.Recent) {
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
