package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// runClient is one `airlock run` whose program the daemon runs.
type runClient struct {
	d       *Daemon
	conn    *net.UnixConn
	session string
	cancel  context.CancelFunc

	telling sync.WaitGroup
	writing sync.Mutex // held while a line is written
	mu      sync.Mutex // guards what follows
	waiting map[string]chan join.RunAnswer
}

// serveRun makes one run for a client, in a new session.
func (d *Daemon) serveRun(ctx context.Context, conn *net.UnixConn, in *bufio.Reader, profile string) error {
	defer d.bounded.answering.begin()()
	first, err := readClient(in)
	if err != nil {
		return err
	}
	if first.Run == nil {
		return errors.New("the first line has no program")
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &runClient{d: d, conn: conn, session: telemetry.NewID("ses"), cancel: cancel,
		waiting: map[string]chan join.RunAnswer{}}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer conn.Close() // ends c.read
	defer cancel()
	reading.Go(func() { c.read(in) })
	who := caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Session: c.session, Profile: profile}
	last := c.run(ctx, *first.Run, who)
	c.telling.Wait() // no further questions are sent
	err = c.write(last)
	d.opts.System.Runs().EndSession(c.session)
	return err
}

// readClient reads one line.
func readClient(in *bufio.Reader) (join.FromClient, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > join.MaxRunLine {
			return join.FromClient{}, fmt.Errorf("a line has more than %d bytes", join.MaxRunLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return join.FromClient{}, err
		}
		var message join.FromClient
		return message, strictjson.UnmarshalOpen(line, &message)
	}
}

// read handles the lines of the client until it disconnects, and then cancels the run.
func (c *runClient) read(in *bufio.Reader) {
	defer c.cancel()
	for {
		message, err := readClient(in)
		switch {
		case err != nil:
			return
		case message.Cancel:
			c.cancel()
		case message.Answer != nil:
			c.mu.Lock()
			waiting := c.waiting[message.Answer.ID]
			delete(c.waiting, message.Answer.ID) // the first answer counts
			c.mu.Unlock()
			if waiting != nil {
				waiting <- *message.Answer
			}
		}
	}
}

// write writes one line. A client that does not read it in time is cut off.
func (c *runClient) write(message join.ToClient) error {
	line, err := canon.Verbatim(message) // a question in it keeps its arguments byte for byte
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.d.limits.readTime)); err != nil {
		return err
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// run runs the program and returns the last message for the client. The run ends when ctx is
// done.
func (c *runClient) run(ctx context.Context, r join.RunRequest, who caller.Caller) join.ToClient {
	s := c.d.opts.System
	if err := s.AwaitFor(ctx, r.Code, who.Profile); err != nil {
		return refusal(err)
	}
	for _, notice := range s.Notices(who.Profile) {
		if err := c.write(join.ToClient{Notice: encoded(notice)}); err != nil {
			return refusal(err) // the client has disconnected
		}
	}
	defer c.ask(r.Terminal)()
	run, err := s.Runs().Start(ctx, orchestrator.Request{Language: r.Language, Code: r.Code, Timeout: r.Timeout,
		Network: r.Network, Caller: who, Alone: true})
	if err != nil {
		return refusal(err)
	}
	reported := c.report(ctx, run, r.Terminal)
	outcome, err := run.Wait(ctx)
	reported()
	if err != nil {
		return refusal(err)
	}
	line, err := outcome.Envelope.Line()
	if err != nil {
		return refusal(err)
	}
	failure := outcome.Envelope.Result.Error
	return join.ToClient{Outcome: &join.RunOutcome{
		Line: line, Printed: printed(outcome.Printed), OK: failure == nil, Refused: failure != nil && failure.Refusal(),
	}}
}

// progressEvery is the interval of messages about the progress of a run.
const progressEvery = time.Second

// report sends the progress of a run to a client with a terminal until stop is called.
func (c *runClient) report(ctx context.Context, run *runs.Run, terminal bool) (stop func()) {
	if !terminal {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if text := run.Progress(); text != "" && c.write(join.ToClient{Progress: text}) != nil {
				return // the client has disconnected
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait()
	}
}

// printed returns the output of the code with credentials redacted. The daemon does this,
// because the rules that find credentials take too long to compile in a short-lived client.
func printed(by orchestrator.Printed) string {
	text := by.Stdout + by.Stderr
	if text == "" {
		return ""
	}
	return credentials.Messages().Text(text)
}

// encoded encodes a part of a message.
func encoded(part any) json.RawMessage {
	text, err := canon.Verbatim(part)
	if err != nil {
		panic(err) // notices and questions are texts and times
	}
	return text
}

func refusal(err error) join.ToClient {
	err = setup.Advise(err)
	r := &join.RunRefusal{Kind: orchestrator.RefusalType(err), Problem: err.Error(),
		Ending: errors.Is(err, runs.ErrClosed)}
	var advised interface{ Hint() string }
	if errors.As(err, &advised) {
		r.Advice = advised.Hint()
	}
	var input *orchestrator.InputError
	var setup *setup.Error
	r.Usage = errors.As(err, &input) || errors.As(err, &setup)
	return join.ToClient{Refused: r}
}

// ask registers the client's terminal as the channel for approvals of its run, and sends
// the client the calls that wait for an answer elsewhere. A terminal that may not approve
// is not registered.
func (c *runClient) ask(terminal bool) (stop func()) {
	desk := c.d.opts.System.Approvals()
	unsubscribe := desk.Subscribe(func(e approval.Event) {
		if e.Open && !e.HasChannel && e.Question.SessionID == c.session {
			// fails if the client has disconnected
			c.telling.Go(func() { _ = c.write(join.ToClient{Waits: encoded(e.Question)}) })
		}
	})
	if !terminal {
		return unsubscribe
	}
	if err := c.d.mayApprove(c.conn, c.session); err != nil {
		c.d.opts.Logger.WarnContext(context.Background(),
			"the terminal of a run is not asked: no approval from there would count", slog.Any(telemetry.KeyError, err))
		return unsubscribe
	}
	unregister := desk.Register(c.session, c)
	return func() {
		unregister()
		unsubscribe()
	}
}

var _ approval.Asker = (*runClient)(nil)

// Ask implements approval.Asker.
func (c *runClient) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	answer := make(chan join.RunAnswer, 1)
	c.mu.Lock()
	c.waiting[q.ID] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, q.ID)
		c.mu.Unlock()
	}()
	if err := c.write(join.ToClient{Question: encoded(q)}); err != nil {
		return approval.Verdict{}, err
	}
	select {
	case <-ctx.Done():
		_ = c.write(join.ToClient{Over: q.ID}) // fails if the client has disconnected
		return approval.Verdict{}, ctx.Err()
	case a := <-answer:
		if a.Nobody {
			return approval.Verdict{}, errors.New("no person was reached at the terminal of the run")
		}
		v := approval.Verdict{By: q.Principal + ", terminal of the run"}
		if !a.Approve {
			return v, nil
		}
		if err := c.d.mayApprove(c.conn, c.session); err != nil {
			return approval.Verdict{}, err
		}
		v.Answer = approval.Yes
		if a.ForRun {
			v.For.Reach = approval.ThisRun
		}
		return v, nil
	}
}
