package approval

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Extent is what a Yes covers beside the call that was asked about. The zero value is nothing.
type Extent struct {
	Reach Reach
	Until time.Time // of UntilDate
}

// Reach is the kind of an Extent.
type Reach int

// The reaches, from the least to the most.
const (
	ThisCall    Reach = iota
	ThisRun           // further calls of the tool by the run
	ThisSession       // further calls of the tool in the conversation of the host
	UntilDate         // further calls of the tool by the principal until a date
)

// The maximum lifetimes of grants. Each grant also ends with the process that was asked.
const (
	runLifetime     = time.Hour
	sessionLifetime = 12 * time.Hour
	maxLifetime     = 90 * 24 * time.Hour
)

// The names of reaches in answers.
const (
	extentCall    = "call"
	extentRun     = "run"
	extentSession = "session"
)

// ErrExtent is returned for an extent that a question cannot have.
var ErrExtent = errors.New("the approval cannot cover that")

// String returns the extent as ParseExtent reads it.
func (e Extent) String() string {
	switch e.Reach {
	case ThisRun:
		return extentRun
	case ThisSession:
		return extentSession
	case UntilDate:
		return e.Until.UTC().Format(time.RFC3339)
	}
	return extentCall
}

// ParseExtent reads an extent: "call", "run", "session", a time as in RFC 3339, or a date, the end of which is meant.
// An empty text is the call.
func ParseExtent(text string, now time.Time) (Extent, error) {
	switch text {
	case "", extentCall:
		return Extent{}, nil
	case extentRun:
		return Extent{Reach: ThisRun}, nil
	case extentSession:
		return Extent{Reach: ThisSession}, nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		if until, err = time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
			until = until.AddDate(0, 0, 1)
		}
	}
	switch {
	case err != nil:
		return Extent{}, detailed{ErrExtent, fmt.Sprintf("%q is not call, run, session or a date such as %s", text,
			now.AddDate(0, 0, 7).Format(time.DateOnly))}
	case !now.Before(until):
		return Extent{}, detailed{ErrExtent, fmt.Sprintf("%q is not in the future", text)}
	case until.Sub(now) > maxLifetime:
		return Extent{}, detailed{ErrExtent, fmt.Sprintf("%q is more than 90 days ahead: write a rule for calls that "+
			"are always allowed (airlock policy propose)", text)}
	}
	return Extent{UntilDate, until}, nil
}

// Describe returns the extent for people; empty for the call alone.
func (e Extent) Describe() string {
	switch e.Reach {
	case ThisRun:
		return "for the run"
	case ThisSession:
		return "for the session"
	case UntilDate:
		return "until " + e.String()
	}
	return ""
}

// narrower returns what two people have both agreed to.
func narrower(a, b Extent) Extent {
	if order := cmp.Or(cmp.Compare(a.Reach, b.Reach), a.Until.Compare(b.Until)); order > 0 {
		return b
	}
	return a
}

// Allows reports whether a Yes to the question may have an extent. A destructive call is approved for its run at most.
func (q Question) Allows(e Extent) error {
	if e.Reach > ThisRun && q.isDestructive() {
		return detailed{ErrExtent, "a call with this risk can be approved for its run at most, not " + e.Describe()}
	}
	return nil
}
