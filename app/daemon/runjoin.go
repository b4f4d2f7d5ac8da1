package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// RunHere handles the messages of the daemon to a client of JoinRun. Its methods must be safe
// for concurrent use.
type RunHere interface {
	approval.Asker // at the terminal
	// Notice shows a notice about the servers to a person.
	Notice(upstreams.Notice)
	// Waits shows a call that waits for an approval from elsewhere.
	Waits(approval.Question)
	// Progress shows what the run has done so far, see orchestrator.Live.
	Progress(text string)
}

// JoinRun connects to the running daemon of the same user, state directory and
// configuration, to run one program there. The errors are those of Join.
func JoinRun(h Host) (*join.Conn, error) {
	return join.Dial(join.Hello{Purpose: join.PurposeRun, Version: h.Version, Config: config.Digest(h.Config),
		Profile: h.Profile})
}

// Run sends one program to the daemon, which runs it once, and returns the result of Finish.
func Run(ctx context.Context, conn *join.Conn, r join.RunRequest, here RunHere) (*join.RunOutcome, error) {
	if err := conn.Send(join.FromClient{Run: &r}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%w)", join.ErrLost, err), conn.Close())
	}
	return Finish(ctx, conn, here)
}

// Finish waits for the outcome of a program that was sent to the daemon. If ctx is done, it
// cancels the run and returns the outcome of the cancelled run. The error is a
// *join.RunRefusal if the run was not started, or join.ErrLost. The connection is closed in
// any case.
func Finish(ctx context.Context, conn *join.Conn, here RunHere) (*join.RunOutcome, error) {
	var work sync.WaitGroup
	defer work.Wait()
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer conn.Close() // before the wait, which it ends
	client := &joinedRun{conn: conn, here: here, work: &work, open: map[string]context.CancelFunc{}}
	// if this fails, the daemon has ended
	defer context.AfterFunc(ctx, func() { _ = client.write(join.FromClient{Cancel: true}) })()
	return client.read(asking)
}

// joinedRun is the client's side of a run in the daemon.
type joinedRun struct {
	conn *join.Conn
	here RunHere
	work *sync.WaitGroup

	writing sync.Mutex
	mu      sync.Mutex
	open    map[string]context.CancelFunc // by the ID of the question
}

func (j *joinedRun) write(message join.FromClient) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.conn.Send(message)
}

// read handles the messages of the daemon until the outcome arrives. ctx bounds the questions
// to a person.
func (j *joinedRun) read(ctx context.Context) (*join.RunOutcome, error) {
	for {
		line, err := j.conn.ReadLine()
		if err != nil {
			return nil, join.ErrLost
		}
		var message join.ToClient
		if err := strictjson.UnmarshalOpen(line, &message); err != nil {
			return nil, fmt.Errorf("%w (%w)", join.ErrLost, err)
		}
		switch {
		case message.Outcome != nil:
			return message.Outcome, nil
		case message.Refused != nil:
			return nil, message.Refused
		case message.Over != "":
			j.over(message.Over)
		case message.Progress != "":
			j.here.Progress(message.Progress)
		default:
			if err := j.notify(ctx, message); err != nil {
				return nil, fmt.Errorf("%w (%w)", join.ErrLost, err)
			}
		}
	}
}

// notify passes a message of the daemon to the person at the terminal.
func (j *joinedRun) notify(ctx context.Context, message join.ToClient) error {
	var notice upstreams.Notice
	var q approval.Question
	switch {
	case message.Notice != nil:
		if err := strictjson.UnmarshalOpen(message.Notice, &notice); err != nil {
			return err
		}
		j.here.Notice(notice)
	case message.Waits != nil:
		if err := strictjson.UnmarshalOpen(message.Waits, &q); err != nil {
			return err
		}
		j.here.Waits(q)
	case message.Question != nil:
		if err := strictjson.UnmarshalOpen(message.Question, &q); err != nil {
			return err
		}
		j.ask(ctx, q)
	}
	return nil
}

// ask asks at the terminal, concurrently with other messages, until the question is closed or
// ctx is done.
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
		// If this fails, the daemon has ended, and read returns an error.
		_ = j.write(join.FromClient{Answer: &join.RunAnswer{ID: q.ID, Approve: err == nil && v.Answer == approval.Yes,
			ForRun: v.For.Reach == approval.ThisRun, Nobody: err != nil}})
	})
}

// over closes a question. It may be called twice.
func (j *joinedRun) over(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if stop := j.open[id]; stop != nil {
		stop()
		delete(j.open, id)
	}
}
