package daemon

import (
	"context"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/webhook"
)

// openWebhooks sends messages about questions, if endpoints are configured.
func (d *Daemon) openWebhooks(ctx context.Context) {
	configured := d.opts.Config.Approvals
	if len(configured.Webhooks) == 0 {
		return
	}
	sender := webhook.New(ctx, webhook.Options{
		Endpoints: d.webhooks, Link: d.askLink, Awake: configured.QuietHours.Awake, Logger: d.log,
	})
	d.undo.Add(sender.Close)
	unsubscribe := d.opts.System.Approvals().Subscribe(func(e approval.Event) {
		sender.Note(e)
		if !e.Open && d.console != nil {
			d.console.EndLinks(e.Question.ID)
		}
	})
	d.undo.Add(func() error { unsubscribe(); return nil })
}

// askLink returns a one-time URL that leads to a question; empty without a console.
func (d *Daemon) askLink(question string) string {
	if d.console == nil {
		return ""
	}
	return d.ConsoleURL() + d.console.AskLink(question)
}
