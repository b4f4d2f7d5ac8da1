package budget

import (
	"fmt"
	"strings"
	"time"
)

// Codes of what was exceeded.
const (
	CodeDayCost       = "QWED-AGENT-BUDGET-001"
	CodeHourRequests  = "QWED-AGENT-BUDGET-002"
	CodeRequestCost   = "QWED-AGENT-BUDGET-003"
	CodeDayRequests   = "QWED-AGENT-BUDGET-004"
	CodeRequestTokens = "QWED-AGENT-BUDGET-005"
)

// Exceeded says which limit a request would exceed. Nothing was debited for it.
type Exceeded struct {
	Code    string
	Account string
	Text    string // which limit, and how the account stands
	// Again is when the same request may be tried again; zero: only after the
	// limit was raised.
	Again time.Time
}

// Error says which limit would be exceeded.
func (e *Exceeded) Error() string { return e.Text }

// exceeded returns the first limit that the charge would exceed, or nil.
func (s Standing) exceeded(c Charge) *Exceeded {
	l := s.Limits
	// What never can be allowed comes first: waiting does not help there.
	if l.RequestCost != nil && c.Cost > *l.RequestCost {
		return s.refuse(CodeRequestCost, time.Time{}, "a request may cost %s USD at most, this one would cost %s USD", *l.RequestCost, c.Cost)
	}
	if l.RequestTokens != nil && c.Tokens > *l.RequestTokens {
		return s.refuse(CodeRequestTokens, time.Time{}, "a request may use %d tokens at most, this one would use %d", *l.RequestTokens, c.Tokens)
	}
	if l.DayCost != nil && (s.Day.Cost+c.Cost > *l.DayCost || *l.DayCost == 0) {
		return s.refuse(CodeDayCost, s.Day.Ends, "the daily budget is %s USD, %s USD of it are spent, and this request would cost %s USD", *l.DayCost, s.Day.Cost, c.Cost)
	}
	if l.HourRequests != nil && s.Hour.Requests >= *l.HourRequests {
		return s.refuse(CodeHourRequests, s.Hour.Ends, "%d requests an hour are allowed, and %d were made", *l.HourRequests, s.Hour.Requests)
	}
	if l.DayRequests != nil && s.Day.Requests >= *l.DayRequests {
		return s.refuse(CodeDayRequests, s.Day.Ends, "%d requests a day are allowed, and %d were made", *l.DayRequests, s.Day.Requests)
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
