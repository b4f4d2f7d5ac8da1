package runs

import (
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Past is a run that ended with the process that ran it.
type Past struct {
	Owner        caller.Owner
	Language     string
	Began, Ended time.Time
	Envelope     orchestrator.Envelope
}

// run returns the run as done. Its principal reaches it from every session, because that of the run ended with the
// process.
func (p Past) run(id string) *Run {
	done := make(chan struct{})
	close(done)
	return &Run{
		id: id, owner: p.Owner, language: p.Language, asked: p.Began, cancel: func() {}, done: done,
		state: Done, span: span{p.Began, p.Ended}, suspension: suspension{anySession: true},
		ending:      ending{outcome: &orchestrator.Outcome{Envelope: p.Envelope}},
		subscribers: map[chan struct{}]bool{},
	}
}
