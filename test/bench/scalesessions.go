package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

const (
	sessionsOfToken = 10
	idleTime        = 20 * time.Second
)

func sessionSizes() []int { return []int{100, 300, 1000} }

// measureManySessions measures a daemon with open sessions, each of which hears of changes.
func measureManySessions(ctx context.Context, b *bench) error {
	all := newCurves(b.table)
	for _, size := range sessionSizes() {
		all.at(fmt.Sprintf("%d sessions", size))
		if err := b.scaleSessions(ctx, size, all); err != nil {
			return fmt.Errorf("%d sessions: %w", size, err)
		}
	}
	return nil
}

// crowd is the open sessions of a daemon.
type crowd struct {
	*serving
	size     int
	tokens   []string
	sessions []map[string]string // the headers of their requests
}

func (b *bench) scaleSessions(ctx context.Context, size int, to *curves) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	tools := []*mcp.Tool{{Name: "echo", InputSchema: map[string]any{"type": "object"}}}
	servers, configured := serveMany(toolSize{1, 1}, tools, &undo)
	n, err := b.alone(configured, map[string]any{"pool": 0}, &undo)
	if err != nil {
		return err
	}
	c := &crowd{serving: n, size: size, sessions: make([]map[string]string, size)}
	for i := range size / sessionsOfToken {
		token, err := n.token(ctx, fmt.Sprint("caller-", i))
		if err != nil {
			return err
		}
		c.tokens = append(c.tokens, token)
	}
	if err := n.start(ctx, &undo); err != nil {
		return err
	}
	host, err := n.open(ctx, c.tokens[0], &undo)
	if err != nil {
		return err
	}
	if err := host.find(ctx, "", 1); err != nil {
		return err
	}
	return c.measure(ctx, host, servers[0], to)
}

// measure measures the life of the sessions, of which host is one more.
func (c *crowd) measure(ctx context.Context, host *face, changing *mcp.Server, to *curves) error {
	pid := c.command.Process.Pid
	if err := calm(ctx, pid); err != nil {
		return err
	}
	without, err := memoryOf([]int{pid})
	if err != nil {
		return err
	}
	opened, err := spentOn(pid, 1, func(int) error { return c.each(ctx, c.openOne) })
	if err != nil {
		return err
	}
	to.add("processor time of opening all sessions", "ms", opened)
	streams, listening := context.WithCancel(ctx)
	defer listening()
	heard := make(chan struct{}, c.size)
	listened, err := spentOn(pid, 1, func(int) error {
		return c.each(ctx, func(_ context.Context, i int) error { return c.listen(streams, i, heard) })
	})
	if err != nil {
		return err
	}
	to.add("processor time of all streams for notifications", "ms", listened)
	if err := calm(ctx, pid); err != nil {
		return err
	}
	with, err := memoryOf([]int{pid})
	if err != nil {
		return err
	}
	to.add("memory of all sessions with their streams, PSS", "MB", sample{with.proportional - without.proportional})
	idle, err := spentOn(pid, 1, func(int) error { return rest(ctx, idleTime) })
	if err != nil {
		return err
	}
	idle[0] *= float64(time.Minute / idleTime)
	to.add("processor time of an idle minute", "ms", idle)
	searched, err := spentOn(pid, 300, func(int) error { _, err := host.search(ctx, "echo"); return err })
	if err != nil {
		return err
	}
	to.add("processor time of a search in one of the sessions", "ms", searched)
	told, err := spentOn(pid, 1, func(int) error {
		changing.AddTool(&mcp.Tool{Name: changingTool, InputSchema: map[string]any{"type": "object"}}, echo)
		for range c.size {
			select {
			case <-heard:
			case <-time.After(time.Minute):
				return errors.New("not every session hears of a new tool")
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	to.add("processor time of a new tool of which all sessions hear", "ms", told)
	closed, err := spentOn(pid, 1, func(int) error { return c.each(ctx, c.closeOne) })
	to.add("processor time of closing all sessions", "ms", closed)
	return err
}

// each does something with all sessions, a few at a time.
func (c *crowd) each(ctx context.Context, do func(ctx context.Context, i int) error) error {
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(asking)
	for i := range c.size {
		all.Go(func() error { return do(within, i) })
	}
	return all.Wait()
}

func (c *crowd) openOne(ctx context.Context, i int) (err error) {
	c.sessions[i], err = c.session(ctx, c.tokens[i/sessionsOfToken])
	return err
}

// listen opens the stream of a session and reads it until ctx ends. heard receives when the list of tools has changed.
func (c *crowd) listen(ctx context.Context, i int, heard chan<- struct{}) error {
	res, err := c.bare(ctx, http.MethodGet, i)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("a stream: HTTP %d", res.StatusCode), res.Body.Close())
	}
	go func() {
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), "notifications/tools/list_changed") {
				heard <- struct{}{}
			}
		}
	}()
	return nil
}

func (c *crowd) closeOne(ctx context.Context, i int) error {
	res, err := c.bare(ctx, http.MethodDelete, i)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// bare sends a request without a body in a session.
func (c *crowd) bare(ctx context.Context, method string, i int) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+"/mcp", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	for key, value := range c.sessions[i] {
		r.Header.Set(key, value)
	}
	return c.web.Do(r)
}
