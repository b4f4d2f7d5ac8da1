package approvals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/verb"
)

// AskHere registers the terminal of `airlock run` as the channel for approvals of its session.
// Without a terminal, it prints on stderr how to answer the questions. line is hidden meanwhile. stop unregisters it.
func AskHere(desk *approval.Desk, session string, stderr io.Writer, line *verb.ProgressLine) (stop func()) {
	unsubscribe := desk.Subscribe(func(e approval.Event) {
		if e.Open && !e.HasChannel {
			line.Hide()
			TellWaits(stderr, e.Question)
			line.Show()
		}
	})
	at, err := verb.OpenTerminal()
	if err != nil {
		return unsubscribe
	}
	unregister := desk.Register(session, &Person{At: at, Line: line})
	return func() {
		unregister()
		unsubscribe()
		at.Close()
	}
}

// TellWaits prints that a call waits for an answer, and how to answer it in another terminal.
func TellWaits(stderr io.Writer, q approval.Question) {
	fmt.Fprintf(stderr, "airlock: the call of %s on %s waits for your decision until %s (%s)\nhint: airlock "+
		"approvals watch, in another terminal\n",
		verb.OneLine(q.ToolName, 60), verb.OneLine(q.ServerID, 60), q.Expires.Local().Format("15:04:05"), q.ID)
}

// Person is the user at the terminal of `airlock run`.
type Person struct {
	At   *verb.Terminal
	Line *verb.ProgressLine // hidden while a question is shown
	mu   sync.Mutex         // one question at a time
}

var _ approval.Asker = (*Person)(nil)

// Ask shows a question and waits for a key. A person who skips the question can answer it in
// another terminal while it is open.
func (p *Person) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	if q.Elicitation != nil && q.Elicitation.NeedsValues {
		return approval.Verdict{}, errors.New("the server's form takes values, which no terminal asks for")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil { // it was answered while another question was shown
		return approval.Verdict{}, err
	}
	p.Line.Hide()
	defer p.Line.Show()
	chosen, err := askAt(ctx, p.At, q)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(p.At, "\nairlock: the question is not open any more\n")
		return approval.Verdict{}, ctx.Err()
	case err != nil:
		return approval.Verdict{}, err
	case chosen.skip:
		fmt.Fprintf(p.At, "airlock: waiting: airlock approvals approve %s, or deny, in another terminal\n", q.ID)
		<-ctx.Done()
		return approval.Verdict{}, ctx.Err()
	}
	v := approval.Verdict{By: q.Principal + ", terminal of the run", For: chosen.extent}
	if chosen.approve {
		v.Answer = approval.Yes
	}
	return v, nil
}
