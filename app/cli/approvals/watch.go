package approvals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
)

type approvalsWatchVerb struct{}

// Run shows each question when it is opened, until it is interrupted. At a terminal it also reads
// the answers.
func (v *approvalsWatchVerb) Run(ctx context.Context, s *verb.Streams) error {
	dir, err := approvalsDir()
	if err != nil {
		return err
	}
	var others func() ([]approval.Posted, error)
	if first, err := daemon.OtherQuestions(); err == nil && first.Node != "" {
		others = func() ([]approval.Posted, error) {
			now, err := daemon.OtherQuestions()
			return now.Questions, err
		}
	}
	at, err := verb.OpenTerminal()
	if err != nil { // show the questions; they are answered in another terminal
		return approval.Watch(ctx, dir, others, printer{s})
	}
	defer at.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	queue := &questionQueue{changed: make(chan struct{}, 1)}
	var answering sync.WaitGroup
	answering.Go(func() {
		defer stop()
		err = answerAll(ctx, s, at, dir, queue)
	})
	watched := approval.Watch(ctx, dir, others, queue)
	stop()
	answering.Wait()
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		err = nil // interrupted, or the terminal has hung up
	}
	return errors.Join(watched, err)
}

// printer shows questions if there is no terminal for the answers.
type printer struct{ s *verb.Streams }

var _ approval.Watcher = printer{}

// Opened prints a question and how to answer it.
func (p printer) Opened(q approval.Posted) error {
	_, err := fmt.Fprintf(p.s.Out, "%sairlock approvals approve %s   or   airlock approvals deny %s\n\n",
		approval.Excerpt(q.Question, maxShown), q.ID, q.ID)
	return err
}

// Closed prints the outcome of a question.
func (p printer) Closed(q approval.Posted, outcome string) error {
	_, err := fmt.Fprintf(p.s.Out, "%s: %s\n\n", q.ID, outcome)
	return err
}

// questionQueue is the queue of open questions, oldest first, for one person.
type questionQueue struct {
	changed chan struct{} // holds a value if the queue has changed

	mu    sync.Mutex // guards the following fields
	open  []approval.Posted
	ended map[string]string // outcomes of closed questions by ID
}

var _ approval.Watcher = (*questionQueue)(nil)

// Opened appends a question.
func (u *questionQueue) Opened(q approval.Posted) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = append(u.open, q)
	u.signal()
	return nil
}

// Closed removes a question.
func (u *questionQueue) Closed(q approval.Posted, outcome string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = slices.DeleteFunc(u.open, func(other approval.Posted) bool { return other.ID == q.ID })
	u.ended = map[string]string{q.ID: outcome}
	u.signal()
	return nil
}

func (u *questionQueue) signal() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// next waits for an open question that was not skipped.
func (u *questionQueue) next(ctx context.Context, skipped map[string]bool) (approval.Posted, error) {
	for {
		u.mu.Lock()
		i := slices.IndexFunc(u.open, func(q approval.Posted) bool { return !skipped[q.ID] })
		var q approval.Posted
		if i >= 0 {
			q = u.open[i]
		}
		u.mu.Unlock()
		if i >= 0 {
			return q, nil
		}
		select {
		case <-ctx.Done():
			return approval.Posted{}, ctx.Err()
		case <-u.changed:
		}
	}
}

// untilClosed returns a context that is cancelled when the question is closed, and a function that
// returns the outcome. The caller must call stop.
func (u *questionQueue) untilClosed(ctx context.Context, id string) (while context.Context, outcome func() string,
	stop func()) {
	while, stop = context.WithCancel(ctx)
	closed := func() (string, bool) {
		u.mu.Lock()
		defer u.mu.Unlock()
		text, is := u.ended[id]
		return text, is || !slices.ContainsFunc(u.open, func(q approval.Posted) bool { return q.ID == id })
	}
	go func() {
		for {
			if _, is := closed(); is {
				stop()
				return
			}
			select {
			case <-while.Done():
				u.signal() // wakes the next waiting goroutine
				return
			case <-u.changed:
			}
		}
	}()
	return while, func() string { text, _ := closed(); return text }, stop
}

// answerAll shows one question after the other and reads the answers.
func answerAll(ctx context.Context, s *verb.Streams, at *verb.Terminal, dir string, queue *questionQueue) error {
	fmt.Fprintln(at, "airlock: waiting for calls that need you; ctrl-c ends this")
	done := map[string]bool{}
	for {
		q, err := queue.next(ctx, done)
		if err != nil {
			return err
		}
		done[q.ID] = true
		while, outcome, stop := queue.untilClosed(ctx, q.ID)
		choice, err := askAt(while, at, q.Question)
		stop()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.Canceled):
			fmt.Fprintf(at, "\nairlock: %s: %s\n\n", q.ID, outcome())
		case err != nil:
			return err
		case choice.skip:
			fmt.Fprintf(at, "airlock: %s stays open: airlock approvals approve %s, or deny\n\n", q.ID, q.ID)
		default:
			answer := approval.Decision{Approve: choice.approve, For: choice.extent}
			if err := reply(s, dir, q, answer, false); err != nil {
				verb.Report(s.Err, replyError(err))
			}
		}
	}
}

// choice is the answer of a person at a terminal.
type choice struct {
	approve, skip bool
	extent        approval.Extent
}

// askAt shows a question at a terminal and waits for the person's key.
func askAt(ctx context.Context, at *verb.Terminal, q approval.Question) (choice, error) {
	if err := at.Begin(); err != nil {
		return choice{}, err
	}
	defer at.End()
	choices, keys := "y approve this call   r approve this tool for the whole run   n deny   s decide later: ", "yrns"
	switch e := q.Elicitation; {
	case e != nil && e.NeedsValues:
		choices, keys = "n refuse   s leave it to the agent's host, where the form can be filled in: ", "ns"
	case e != nil:
		choices, keys = "y agree   n refuse   s decide later: ", "yns"
	}
	fmt.Fprintf(at, "\n%s\n%s", approval.Excerpt(q, maxShown), choices)
	key, err := at.Key(ctx, keys)
	if err != nil {
		return choice{}, err
	}
	fmt.Fprintf(at, "%c\n", key)
	chosen := choice{approve: key == 'y' || key == 'r', skip: key == 's'}
	if key == 'r' {
		chosen.extent.Reach = approval.ThisRun
	}
	return chosen, nil
}
