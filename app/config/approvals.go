package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Approvals configures how people are reached who answer questions. The zero value reaches nobody.
type Approvals struct {
	Webhooks   []Webhook // in the order of the file
	QuietHours QuietHours
	Escalation Escalation
}

// Webhook is an endpoint for messages about questions.
type Webhook struct {
	Name   string
	URL    string
	Secret secret.Value // a reference is resolved by app/daemon
}

// QuietHours are the hours of each day in which nobody is disturbed. The zero value means that there are no such hours.
type QuietHours struct {
	From, To string // HH:MM; To may be on the next day
	Zone     string // of the IANA database; empty: that of the machine
}

// Escalation lets a role approve in place of the owner after a time. The zero value lets nobody.
type Escalation struct {
	After time.Duration
	Role  string
}

func (d *decoder) approvalFields(a *Approvals) []field {
	return []field{
		{key: "webhooks", read: d.webhooks(&a.Webhooks)},
		{key: "quietHours", read: func(n *yaml.Node, path string) error {
			err := d.object(n, path, d.quietFields(&a.QuietHours))
			if err == nil && a.QuietHours.From == a.QuietHours.To {
				err = d.fail(n, `write {from: "22:00", to: "07:00"}`, "%s has no two times that differ", path)
			}
			return err
		}},
		{key: "escalation", read: func(n *yaml.Node, path string) error {
			err := d.object(n, path, d.escalationFields(&a.Escalation))
			if err == nil && (a.Escalation.After == 0 || a.Escalation.Role == "") {
				err = d.fail(n, "write {after: 15m, role: oncall}", "%s needs a time and a role", path)
			}
			return err
		}},
	}
}

func (d *decoder) webhookFields(w *Webhook) []field {
	return []field{
		{key: "url", val: hookURL{&w.URL}},
		{key: "secret", read: d.secret(&w.Secret)},
	}
}

func (d *decoder) quietFields(q *QuietHours) []field {
	return []field{
		{key: "from", val: clock{&q.From}}, {key: "to", val: clock{&q.To}}, {key: "zone", val: zone{&q.Zone}},
	}
}

func (d *decoder) escalationFields(e *Escalation) []field {
	return []field{
		{key: "after", val: duration{&e.After, time.Second, 24 * time.Hour}}, {key: "role", val: free{&e.Role}},
	}
}

// maxWebhooks is the maximum number of endpoints.
const maxWebhooks = 16

func (d *decoder) webhooks(to *[]Webhook) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.entries(n, path, func(key, val *yaml.Node) error {
			w, at := Webhook{Name: key.Value}, join(path, key.Value)
			if err := d.object(val, at, d.webhookFields(&w)); err != nil {
				return err
			}
			switch {
			case w.URL == "" || w.Secret.Reveal() == "":
				return d.fail(val, "write {url: https://chat.example.com/hook, secret: keyring:hook}",
					"%s needs a url and a secret", at)
			case len(*to) == maxWebhooks:
				return d.fail(key, "name fewer", "%s has more than %d endpoints", path, maxWebhooks)
			}
			*to = append(*to, w)
			return nil
		})
	}
}

// escalates checks that the role of the escalation is configured.
func (d *decoder) escalates(root *yaml.Node, c *Config) error {
	role := c.Approvals.Escalation.Role
	if role == "" || slices.ContainsFunc(c.Auth.Roles, func(r Role) bool { return r.Name == role }) {
		return nil
	}
	return d.fail(child(child(root, "approvals"), "escalation"), fmt.Sprintf("write auth.roles.%s: {principals: [ann]}",
		role), "approvals.escalation.role is not a role: %q", role)
}

// hookURL is the URL of a webhook. It may have a query, which often is a credential.
type hookURL struct{ to *string }

func (v hookURL) set(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" &&
		(u.Scheme != "http" || !reach.IsLoopback(u.Hostname())) {
		return errors.New("must be an https URL without a user and a fragment")
	}
	*v.to = text
	return nil
}

// clock is a time of the day.
type clock struct{ to *string }

func (v clock) set(text string) error {
	if _, err := time.Parse("15:04", text); err != nil || len(text) != len("15:04") {
		return errors.New(`must be hours and minutes in quotes, such as "22:00"`)
	}
	*v.to = text
	return nil
}

// zone is a time zone of the IANA database.
type zone struct{ to *string }

func (v zone) set(text string) error {
	if _, err := time.LoadLocation(text); err != nil || text == "" {
		return errors.New("must be the name of a zone such as Europe/Berlin, which this machine knows (tzdata)")
	}
	*v.to = text
	return nil
}

// Awake returns the first time from t on that is not in the quiet hours.
func (q QuietHours) Awake(t time.Time) time.Time {
	if q.From == q.To {
		return t
	}
	at := time.Local
	if q.Zone != "" {
		if loaded, err := time.LoadLocation(q.Zone); err == nil { // it was checked
			at = loaded
		}
	}
	local := t.In(at)
	now := local.Format("15:04")
	quiet := q.From <= now && now < q.To
	days := 0
	if q.From > q.To { // over midnight
		quiet = now >= q.From || now < q.To
		if now >= q.From {
			days = 1
		}
	}
	if !quiet {
		return t
	}
	to, _ := time.Parse("15:04", q.To) // it was checked
	return time.Date(local.Year(), local.Month(), local.Day()+days, to.Hour(), to.Minute(), 0, 0, at)
}
