package approval

import "context"

// None is for an Airlock that has nobody to ask: every question is answered
// with Nobody at once.
type None struct{}

// Ask answers at once that there is nobody.
func (None) Ask(context.Context, Question) (Verdict, error) { return Verdict{Answer: Nobody}, nil }
