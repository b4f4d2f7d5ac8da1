package config

import (
	"encoding/json"
	"testing"
)

func TestBudgetsOfPrincipalsAndSessions(t *testing.T) {
	c := mustLoad(t, "agents: {principalBudget: {dayCost: 20, hourRequests: 0}, sessionBudget: {requestCost: 0.5, "+
		"dayRequests: 9}}", noEnv)
	for want, limits := range map[string]any{
		`{"max_daily_cost_usd":20,"max_requests_per_hour":0}`:       c.Agents.PrincipalBudget,
		`{"max_requests_per_day":9,"max_per_request_cost_usd":0.5}`: c.Agents.SessionBudget,
	} {
		if got, err := json.Marshal(limits); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
