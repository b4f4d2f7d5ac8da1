package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// curves shows measurements at some sizes, each with its ratio to the first size.
type curves struct {
	table *table
	size  string // the one that is measured
	first map[string]sample
	base  string // the size of first
}

func newCurves(t *table) *curves { return &curves{table: t, first: map[string]sample{}} }

// at begins a size.
func (c *curves) at(size string) {
	if c.size = size; c.base == "" {
		c.base = size
	}
}

// add adds a measurement at the current size.
func (c *curves) add(what, unit string, s sample) {
	r := newRow(c.size+": "+what, unit, s)
	if base, known := c.first[what]; known {
		r = r.times(base, c.base)
	} else {
		c.first[what] = s
	}
	c.table.add(r)
}

// toolSize is a number of servers with so many tools each.
type toolSize struct{ servers, each int }

func toolSizes() []toolSize { return []toolSize{{10, 100}, {30, 100}, {100, 100}} }

func (s toolSize) String() string {
	return fmt.Sprintf("%d tools of %d servers", s.servers*s.each, s.servers)
}

// changingTool is the name of the tool that measurements add.
const changingTool = "calibrate_spectrometer"

// measureManyTools measures a daemon before servers over HTTP, which have real tools if the corpus is there.
func measureManyTools(ctx context.Context, b *bench) error {
	corpus, err := b.openCorpus()
	if err != nil {
		return err
	}
	tools, err := corpus.tools()
	if err != nil {
		return err
	}
	all := newCurves(b.table)
	for _, size := range toolSizes() {
		all.at(size.String())
		if err := b.scaleTools(ctx, size, tools, all); err != nil {
			return fmt.Errorf("%v: %w", size, err)
		}
	}
	return nil
}

// tools returns the tools of all lists.
func (c *corpus) tools() ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	for _, l := range c.lists {
		var list struct {
			Tools []*mcp.Tool `json:"tools"`
		}
		if err := json.Unmarshal(l.file, &list); err != nil {
			return nil, fmt.Errorf("reading the tools of %q: %w", l.name, err)
		}
		all = append(all, list.Tools...)
	}
	return all, nil
}

// serveMany serves MCP servers over HTTP until undo. If there are too few tools, they come again under other names.
func serveMany(size toolSize, tools []*mcp.Tool, undo *cleanup.Stack) ([]*mcp.Server, map[string]any) {
	mux, configured := http.NewServeMux(), map[string]any{}
	web := httptest.NewServer(mux)
	undo.Add(func() error { web.CloseClientConnections(); web.Close(); return nil })
	var servers []*mcp.Server
	for n := range size.servers {
		server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		for i := range size.each {
			at := n*size.each + i
			tool := *tools[at%len(tools)]
			if round := at / len(tools); round > 0 {
				tool.Name = fmt.Sprintf("%s_%d", tool.Name, round)
			}
			server.AddTool(&tool, echo)
		}
		path := fmt.Sprintf("/server-%d", n)
		mux.Handle(path, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
		configured[path[1:]] = map[string]any{"url": web.URL + path}
		servers = append(servers, server)
	}
	return servers, configured
}

// alone is `airlock serve` on this machine, without a cluster, before servers and with settings of its sandboxes.
func (b *bench) alone(servers, sandbox map[string]any, undo *cleanup.Stack) (*serving, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	undo.Add(func() error { transport.CloseIdleConnections(); return nil })
	f := &fleet{bench: b, web: &http.Client{Transport: transport}}
	return f.single(map[string]any{"mcpServers": servers, "servers": map[string]any{}, "sandbox": sandbox}, undo)
}

func (b *bench) scaleTools(ctx context.Context, size toolSize, tools []*mcp.Tool, to *curves) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	servers, configured := serveMany(size, tools, &undo)
	n, err := b.alone(configured, map[string]any{"pool": 2}, &undo)
	if err != nil {
		return err
	}
	token, err := n.token(ctx, "caller")
	if err != nil {
		return err
	}
	total := size.servers * size.each
	for _, how := range []string{"the first start", "a start with cached lists"} {
		var once cleanup.Stack
		began := time.Now()
		if err := n.start(ctx, &once); err != nil {
			return err
		}
		host, err := n.open(ctx, token, &once)
		if err == nil {
			err = host.find(ctx, "", total)
		}
		took := milliseconds(time.Since(began))
		if err == nil {
			err = calm(ctx, host.process.Pid)
		}
		if err != nil {
			return errors.Join(err, once.Run())
		}
		spent, err := processorTime(host.process.Pid)
		if err != nil {
			return errors.Join(err, once.Run())
		}
		to.add("processor time of "+how, "ms", sample{spent})
		to.add(how+", until all tools are found", "ms", sample{took})
		if how == "the first start" {
			if err := once.Run(); err != nil {
				return err
			}
			continue
		}
		undo.Add(once.Run)
		if err := host.scaleCalls(ctx, servers[0], total, to); err != nil {
			return err
		}
	}
	return nil
}

// scaleCalls measures what a session costs a daemon with many tools.
func (f *face) scaleCalls(ctx context.Context, changing *mcp.Server, total int, to *curves) error {
	pid := f.process.Pid
	memory, err := memoryOf([]int{pid})
	if err != nil {
		return err
	}
	to.add("memory, PSS", "MB", sample{memory.proportional})
	searched, err := spentOn(pid, 100, func(i int) error {
		_, err := f.search(ctx, questions()[i%len(questions())])
		return err
	})
	if err != nil {
		return err
	}
	to.add("processor time of a search", "ms", searched)
	listed, err := spentOn(pid, 200, func(int) error {
		_, err := f.session.ListTools(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	to.add("processor time of tools/list of the face", "ms", listed)
	python := languages()[0]
	for _, form := range []importForm{{"a trivial Python run from the pool", python, python.trivial},
		importForms(catalog.ModuleName("server-0"))[0]} {
		if err := f.run(ctx, form.lang, form.program, nil); err != nil {
			return err
		}
		var took sample
		for range 10 {
			if err := rest(ctx, 5*roundPause); err != nil {
				return err
			}
			inside := 0.
			got, err := timed(func() error { return f.run(ctx, form.lang, form.program, &inside) })
			if err != nil {
				return err
			}
			if form.program != python.trivial {
				got = sample{inside}
			}
			took = append(took, got...)
		}
		if form.program != python.trivial {
			form.what = "inside, import of a server of 100 tools"
		}
		to.add(form.what, "ms", took)
	}
	return f.scaleChange(ctx, changing, total, to)
}

// scaleChange adds a tool to a server and waits until it is found.
func (f *face) scaleChange(ctx context.Context, changing *mcp.Server, total int, to *curves) error {
	var spent, took sample
	for i := range 3 {
		if err := calm(ctx, f.process.Pid); err != nil {
			return err
		}
		before, err := processorTime(f.process.Pid)
		if err != nil {
			return err
		}
		got, err := timed(func() error {
			changing.AddTool(&mcp.Tool{Name: fmt.Sprint(changingTool, "_", i),
				InputSchema: map[string]any{"type": "object"}}, echo)
			return f.find(ctx, "", total+i+1)
		})
		if err != nil {
			return err
		}
		if err := calm(ctx, f.process.Pid); err != nil {
			return err
		}
		after, err := processorTime(f.process.Pid)
		if err != nil {
			return err
		}
		spent, took = append(spent, after-before), append(took, got...)
	}
	to.add("processor time of one new tool", "ms", spent)
	to.add("one new tool, until it is found", "ms", took)
	return nil
}

// search returns how many tools fit a question.
func (f *face) search(ctx context.Context, question string) (int, error) {
	answer, err := f.session.CallTool(ctx, &mcp.CallToolParams{Name: "search_tools",
		Arguments: map[string]any{"query": question, "limit": 5}})
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(answer.StructuredContent)
	if err != nil {
		return 0, err
	}
	var found struct{ Total int }
	if answer.IsError {
		return 0, fmt.Errorf("a search failed: %s", text)
	}
	return found.Total, json.Unmarshal(text, &found)
}

// find searches until so many tools fit.
func (f *face) find(ctx context.Context, question string, total int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, fmt.Errorf("%d tools are not found", total))
	defer cancel()
	for {
		found, err := f.search(ctx, question)
		if err != nil || found >= total {
			return err
		}
		if err := rest(ctx, roundPause/4); err != nil {
			return err
		}
	}
}

// spentOn is the processor time of a process for each of n calls, in milliseconds.
func spentOn(pid, n int, call func(i int) error) (sample, error) {
	before, err := processorTime(pid)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := call(i); err != nil {
			return nil, err
		}
	}
	after, err := processorTime(pid)
	return sample{(after - before) / float64(n)}, err
}

// calm waits until a process and its children have taken less than a twentieth of a processor for a while.
func calm(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, errors.New("the process does not come to rest"))
	defer cancel()
	for {
		before, err := familyTime(pid)
		if err != nil {
			return err
		}
		if err := rest(ctx, settling); err != nil {
			return err
		}
		after, err := familyTime(pid)
		if err != nil || after-before <= milliseconds(settling)/20 {
			return err
		}
	}
}

// familyTime is processorTime with that of the children that run.
func familyTime(pid int) (float64, error) {
	sum := 0.
	for _, one := range withAllBelow(family(), pid) {
		spent, err := processorTime(one)
		if err == nil {
			sum += spent
		} else if _, gone := os.Stat(filepath.Join("/proc", fmt.Sprint(one))); gone == nil {
			return 0, err
		}
	}
	return sum, nil
}
