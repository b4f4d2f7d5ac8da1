package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/approval"
)

// ErrLost says that a daemon ended while it ran a program, so that what came of it is
// not known. What the program did through tools until then is done.
var ErrLost = errors.New("the Airlock daemon ended while it ran the program: what the program did through tools until then is done, and it is not run again")

// RunHere is what a client of JoinRun does where it runs. Its methods may be called
// concurrently.
type RunHere interface {
	approval.Asker // at the terminal
	// Notice tells a person what they should know about the servers.
	Notice(system.Notice)
	// Waits tells of a call that waits for an answer that is given elsewhere.
	Waits(approval.Question)
}

// JoinRun connects to the running daemon of the same user, state directory and
// configuration, to run one program there. The errors are those of Join.
func JoinRun(h Host) (*Conn, error) {
	return dial(h.Config, hello{Purpose: purposeRun, Version: h.Version, Config: config.Digest(h.Config), Profile: h.Profile})
}

// Run has one program run by the daemon, once, and returns what came of it. Cancelling
// ctx ends the run, whose outcome then says so. An error is a *RunRefusal where the
// program did not become a run, or ErrLost. The connection is closed in any case.
func (c *Conn) Run(ctx context.Context, r RunRequest, here RunHere) (*RunOutcome, error) {
	var work sync.WaitGroup
	defer work.Wait()
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer c.Close() // before it is waited for
	client := &joinedRun{conn: c, here: here, work: &work, open: map[string]context.CancelFunc{}}
	if err := client.write(fromClient{Run: &r}); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrLost, err)
	}
	defer context.AfterFunc(ctx, func() { _ = client.write(fromClient{Cancel: true}) })() // it has ended where this fails
	return client.read(asking, c.in)
}

// joinedRun is a program that a daemon runs, seen from the client.
type joinedRun struct {
	conn *Conn
	here RunHere
	work *sync.WaitGroup

	writing sync.Mutex
	mu      sync.Mutex
	open    map[string]context.CancelFunc // by the ID of the question
}

func (j *joinedRun) write(message fromClient) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	_, err = j.conn.Write(append(line, '\n'))
	return err
}

// read does what the daemon says until the outcome comes. Questions are asked until
// ctx ends.
func (j *joinedRun) read(ctx context.Context, in *bufio.Reader) (*RunOutcome, error) {
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil, ErrLost
		}
		var message toClient
		if err := json.Unmarshal(line, &message); err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrLost, err)
		}
		switch {
		case message.Outcome != nil:
			return message.Outcome, nil
		case message.Refused != nil:
			return nil, message.Refused
		case message.Notice != nil:
			j.here.Notice(*message.Notice)
		case message.Waits != nil:
			j.here.Waits(*message.Waits)
		case message.Question != nil:
			j.ask(ctx, *message.Question)
		case message.Over != "":
			j.over(message.Over)
		}
	}
}

// ask asks at the terminal, beside what else the daemon says, until the question is
// open no more or ctx ends.
func (j *joinedRun) ask(ctx context.Context, q approval.Question) {
	ctx, stop := context.WithCancel(ctx)
	j.mu.Lock()
	j.open[q.ID] = stop
	j.mu.Unlock()
	j.work.Go(func() {
		defer j.over(q.ID)
		v, err := j.here.Ask(ctx, q)
		if err != nil && ctx.Err() != nil {
			return
		}
		// Where this fails the daemon has ended, which reading says.
		_ = j.write(fromClient{Answer: &runAnswer{ID: q.ID, Approve: err == nil && v.Answer == approval.Yes, ForRun: v.ForRun, Nobody: err != nil}})
	})
}

// over ends a question. Calling it twice is fine.
func (j *joinedRun) over(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if stop := j.open[id]; stop != nil {
		stop()
		delete(j.open, id)
	}
}
