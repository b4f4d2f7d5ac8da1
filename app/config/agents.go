package config

import (
	"errors"
	"net/url"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Agents configures the limits of registered agents that apply in addition to the budget of
// each agent.
type Agents struct {
	Prices       map[string]budget.Amount // of actions, by action type or tool
	DefaultPrice budget.Amount            // of all other actions
	SecondPrice  budget.Amount            // of each second of a run's sandbox, in addition to the price of the run
	// Budgets of all agents of one principal together, and of one session of an agent.
	PrincipalBudget, SessionBudget budget.Limits

	RequireState bool          // each action must include the hash of the state before it
	QuestionTime time.Duration // to answer a question, and to use the answer
	Rate         Rate          // requests of one principal's agents
	Redis        secret.Value  // the address of the server that counts requests; may hold a password; empty disables it
}

func defaultAgents() Agents {
	return Agents{QuestionTime: 10 * time.Minute, Rate: Rate{60, time.Minute}}
}

func (d *decoder) agentsFields(a *Agents) []field {
	return []field{
		{key: "prices", read: d.prices(&a.Prices)},
		{key: "defaultPrice", val: dollars{&a.DefaultPrice}},
		{key: "secondPrice", val: dollars{&a.SecondPrice}},
		{key: "principalBudget", read: d.budget(&a.PrincipalBudget)},
		{key: "sessionBudget", read: d.budget(&a.SessionBudget)},
		{key: "requireState", val: flag{&a.RequireState}},
		{key: "questionTime", val: duration{&a.QuestionTime, time.Second, 24 * time.Hour}},
		{key: "rate", val: rate{&a.Rate}},
		{key: "redis", read: d.redis(&a.Redis)},
	}
}

// redis reads the address of a Redis server. The address may hold a password, so errors do not
// contain it.
func (d *decoder) redis(to *secret.Value) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if err := d.scalar(n, path, hidden{to}); err != nil {
			return err
		}
		u, err := url.Parse(to.Reveal())
		if err != nil || !slices.Contains([]string{"redis", "rediss", "unix"}, u.Scheme) || u.Scheme != "unix" &&
			u.Host == "" {
			return d.fail(n, "write it as redis://127.0.0.1:6379/0",
				"%s is not the address of a Redis server: redis://, rediss:// or unix://", path)
		}
		return nil
	}
}

func (d *decoder) prices(to *map[string]budget.Amount) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = map[string]budget.Amount{}
		return d.entries(n, path, func(key, val *yaml.Node) error {
			var price budget.Amount
			err := d.scalar(val, join(path, key.Value), dollars{&price})
			(*to)[key.Value] = price
			return err
		})
	}
}

// budget reads the limits of an account. A missing limit does not apply.
func (d *decoder) budget(to *budget.Limits) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = budget.Limits{}
		amount := func(to **budget.Amount) func(n *yaml.Node, path string) error {
			return func(n *yaml.Node, path string) error {
				*to = new(budget.Amount)
				return d.scalar(n, path, dollars{*to})
			}
		}
		requests := func(to **int64) func(n *yaml.Node, path string) error {
			return func(n *yaml.Node, path string) error {
				*to = new(int64)
				return d.scalar(n, path, count[int64]{*to, 0, 1 << 40})
			}
		}
		return d.object(n, path, []field{
			{key: "dayCost", read: amount(&to.DayCost)},
			{key: "requestCost", read: amount(&to.RequestCost)},
			{key: "hourRequests", read: requests(&to.HourRequests)},
			{key: "dayRequests", read: requests(&to.DayRequests)},
		})
	}
}

// dollars is an amount of money in US dollars: 0.01.
type dollars struct{ to *budget.Amount }

func (v dollars) set(text string) error {
	amount, err := budget.ParseAmount(text)
	if err != nil {
		return errors.New("must be an amount in US dollars, such as 0.01")
	}
	*v.to = amount
	return nil
}

// hidden is a value that may hold a credential.
type hidden struct{ to *secret.Value }

func (v hidden) set(text string) error {
	if text == "" {
		return errors.New("must be a text that is not empty")
	}
	*v.to = secret.New(text)
	return nil
}
