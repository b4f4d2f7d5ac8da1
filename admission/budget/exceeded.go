package budget

import (
	"fmt"
	"strings"
	"time"
)

// Error codes of exceeded limits.
const (
	CodeDayCost       = "QWED-AGENT-BUDGET-001"
	CodeHourRequests  = "QWED-AGENT-BUDGET-002"
	CodeRequestCost   = "QWED-AGENT-BUDGET-003"
	CodeDayRequests   = "QWED-AGENT-BUDGET-004"
	CodeRequestTokens = "QWED-AGENT-BUDGET-005"
)

// Exceeded is the error for a request that would exceed a limit. Nothing was debited.
type Exceeded struct {
	Code    string
	Account string
	Text    string // the limit and the state of the account
	// Again is the time at which the same request can be retried. It is zero if the limit must be
	// raised first.
	Again time.Time
}

// Error returns Text.
func (e *Exceeded) Error() string { return e.Text }

// exceeded returns the first limit that the charge would exceed, or nil.
func (s Standing) exceeded(c Charge) *Exceeded {
	l := s.Limits
	// A request that can never be allowed is checked first, because waiting does not help.
	if l.RequestCost != nil && c.Cost > *l.RequestCost {
		return s.refuse(CodeRequestCost, time.Time{}, "a request may cost %s USD at most, this one would cost %s USD",
			*l.RequestCost, c.Cost)
	}
	if l.RequestTokens != nil && c.Tokens > *l.RequestTokens {
		return s.refuse(CodeRequestTokens, time.Time{}, "a request may use %d tokens at most, this one would use %d",
			*l.RequestTokens, c.Tokens)
	}
	if l.DayCost != nil && (s.Day.Cost+c.Cost > *l.DayCost || *l.DayCost == 0) {
		return s.refuse(CodeDayCost, s.Day.Ends,
			"the daily budget is %s USD, %s USD of it are spent, and this request would cost %s USD", *l.DayCost,
			s.Day.Cost, c.Cost)
	}
	if l.HourRequests != nil && s.Hour.Requests >= *l.HourRequests {
		return s.refuse(CodeHourRequests, s.Hour.Ends, "%d requests an hour are allowed, and %d were made",
			*l.HourRequests, s.Hour.Requests)
	}
	if l.DayRequests != nil && s.Day.Requests >= *l.DayRequests {
		return s.refuse(CodeDayRequests, s.Day.Ends, "%d requests a day are allowed, and %d were made", *l.DayRequests,
			s.Day.Requests)
	}
	return nil
}

func (s Standing) refuse(code string, again time.Time, format string, args ...any) *Exceeded {
	text := fmt.Sprintf(format, args...)
	switch kind, _, _ := strings.Cut(s.Account, ":"); kind {
	case Principal:
		text = "for all agents of the principal together: " + text
	case Session:
		text = "for this session: " + text
	}
	return &Exceeded{Code: code, Account: s.Account, Text: text, Again: again}
}
