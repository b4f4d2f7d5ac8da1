package budget

import "fmt"

// Lines describes the state of the account in words: its cost of the day, and its requests of the
// hour and of the day.
func (s Standing) Lines() []string {
	of := func(used any, limit any, set bool) string {
		if !set {
			return fmt.Sprint(used)
		}
		return fmt.Sprintf("%v of %v", used, limit)
	}
	value := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	cost := Amount(0)
	if s.Limits.DayCost != nil {
		cost = *s.Limits.DayCost
	}
	return []string{
		of(s.Day.Cost, cost, s.Limits.DayCost != nil) + " USD today",
		of(s.Hour.Requests, value(s.Limits.HourRequests), s.Limits.HourRequests != nil) + " requests this hour",
		of(s.Day.Requests, value(s.Limits.DayRequests), s.Limits.DayRequests != nil) + " requests today",
	}
}
