package config

import (
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
)

func TestAgents(t *testing.T) {
	c := mustLoad(t, `
agents:
  prices: {execute_sql: 0.01, send_money: 1e1}
  defaultPrice: 0.001
  requireState: true
  questionTime: 1h
  rate: 5/s
  redis: redis://:${REDIS_PASSWORD}@127.0.0.1:6379/0
`, envOf(map[string]string{"REDIS_PASSWORD": "hunter2"}))
	a := c.Agents
	if a.Prices["execute_sql"] != budget.USD/100 || a.Prices["send_money"] != 10*budget.USD ||
		a.DefaultPrice != budget.USD/1000 ||
		!a.RequireState || a.QuestionTime != time.Hour || a.Rate != (Rate{5, time.Second}) ||
		a.Redis.Reveal() != "redis://:hunter2@127.0.0.1:6379/0" {
		t.Errorf("%+v", a)
	}
	for _, price := range []string{"-1", "ten", ".nan", "1e99", "[1]"} {
		_, err := loadAs(t, "airlock.yaml", "agents: {defaultPrice: "+price+"}", envOf(nil))
		if err == nil || !strings.Contains(err.Error(), "agents.defaultPrice") {
			t.Errorf("%s: %v", price, err)
		}
	}
}
