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

// conversationState is what is remembered of a conversation. Only what was
// approved, and what waits for a person, changes it.
type conversationState struct {
	Steps     int      `json:"steps"`     // committed
	Last      int64    `json:"last"`      // the highest committed step
	Recent    []acted  `json:"recent"`    // the newest actions, pending ones included
	Unchanged []string `json:"unchanged"` // fingerprints of the newest approved actions on their states
	// Called counts the calls of the conversation's code, and Calls are the newest of
	// them: they are in a row of their own, since they take no step.
	Called int64   `json:"called,omitempty"`
	At     int64   `json:"at,omitempty"` // when an act was last performed, in seconds since 1970
	Calls  []acted `json:"calls,omitempty"`
}

// acted is one action of a conversation.
type acted struct {
	Step        int64  `json:"step"`
	Fingerprint string `json:"fingerprint"`

	given bool // the step's number is the caller's
}

// check returns why the action must not be done at this step, or nil.
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

// checkAct is check for an act: a step of 0 is the next one, and a call of code takes none.
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
	steps.Last = at.Step - 1 // its number was not given, so none can replay it
	return steps.check(at, onState)
}

// perform adds an act, which gets its step where none was given. One that
// waits for a person gets its number at once, so that no other has it.
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

// repeats counts the identical actions right before this one. The same step
// tried again, as after a person's answer, is no repetition of itself.
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

// remember adds the action: one that waits for a person without its step.
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
