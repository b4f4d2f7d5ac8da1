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

// Used returns the used part of each limit of a day or an hour, by the name of the limit; 1 is all of
// it. All of a limit of zero is used.
func (s Standing) Used() map[string]float64 {
	parts := map[string]float64{}
	add := func(name string, used, limit float64) {
		if parts[name] = 1; limit > 0 {
			parts[name] = used / limit
		}
	}
	if most := s.Limits.DayCost; most != nil {
		add("max_daily_cost_usd", s.Day.Cost.Dollars(), most.Dollars())
	}
	if most := s.Limits.HourRequests; most != nil {
		add("max_requests_per_hour", float64(s.Hour.Requests), float64(*most))
	}
	if most := s.Limits.DayRequests; most != nil {
		add("max_requests_per_day", float64(s.Day.Requests), float64(*most))
	}
	return parts
}
