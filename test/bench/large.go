package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

const (
	smallestLarge = 10_000_000 // bytes of a result or file, with which larger ones are compared
	roundsForMost = 500        // with as many, a size is measured that takes ten minutes and 8 GB of memory
)

// largeSizes are the sizes of results and files, in bytes.
func (b *bench) largeSizes() []int {
	sizes := []int{smallestLarge, 10 * smallestLarge}
	if b.rounds >= roundsForMost {
		sizes = append(sizes, 100*smallestLarge)
	}
	return sizes
}

// sampledEvery is the interval at which the memory of sandboxes is read.
const sampledEvery = 200 * time.Millisecond

// largePrograms are runs that leave a large file in their session. The next run reads the file.
var largePrograms = []struct{ what, code string }{
	{"a tool's result of %s", `from client.mcp_client import call_tool
answer = await call_tool(server_id="large", name="rows", arguments={"bytes": %d})
result = answer["error"]["file"]
`},
	{"a file of %s that the program writes", `import os
line = os.urandom(1 << 20)
left = %d
with open("/workspace/session/file", "wb") as f:
    while left > 0:
        left -= f.write(line[:left])
result = f.name
`},
}

// readingProgram reads a file of the session, and returns its size.
const readingProgram = `size = 0
with open(%q, "rb") as f:
    while part := f.read(1 << 20):
        size += len(part)
result = size
`

// measureLarge has runs of a session leave large files to the next run. Each size has its own Airlock, with the limits
// as high as they can be.
func measureLarge(ctx context.Context, b *bench) error {
	for _, program := range largePrograms {
		var first [2]spending
		for i, size := range b.largeSizes() {
			spent, err := b.largeRuns(ctx, program.code, size)
			if err != nil {
				return fmt.Errorf(program.what+": %w", megabytesOf(size), err)
			}
			if i == 0 {
				first = spent
			}
			for n, what := range []string{program.what, "reading " + program.what + " in the next run"} {
				b.table.add(spent[n].rows(fmt.Sprintf(what, megabytesOf(size)), first[n], i > 0)...)
			}
		}
	}
	return nil
}

func megabytesOf(bytes int) string { return thousands(bytes/1_000_000) + " MB" }

// spending is what one run has used.
type spending struct {
	wall, processor, airlock, sandbox float64 // milliseconds, and megabytes at most
}

// rows are the rows of a run, with the quotients to the run of the smallest size.
func (s spending) rows(what string, smallest spending, compared bool) []row {
	var rows []row
	for _, r := range []struct {
		what, unit  string
		value, than float64
	}{
		{what, "ms", s.wall, smallest.wall},
		{"its processor time", "ms", s.processor, smallest.processor},
		{"peak memory of Airlock", "MB", s.airlock, smallest.airlock},
		{"peak memory of the sandbox, PSS", "MB", s.sandbox, smallest.sandbox},
	} {
		one := newRow(r.what, r.unit, sample{r.value})
		if compared {
			one = one.times(sample{r.than}, megabytesOf(smallestLarge))
		}
		rows = append(rows, one)
	}
	return rows
}

// largeRuns takes the two runs of one size.
func (b *bench) largeRuns(ctx context.Context, code string, size int) (spent [2]spending, err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	server := rowsOverHTTP()
	undo.Add(func() error { server.Close(); return nil })
	airlock, err := b.openFace(ctx, map[string]any{
		"sandbox": map[string]any{"pool": 0, "memory": "6GiB", "disk": "3GiB", "timeout": "20m"},
		"limits": map[string]any{"resultBytes": "1MiB", "largeResultBytes": "1GiB", "bytesIn": "4GiB",
			"callTimeout": "20m"},
		"session": map[string]any{"bytes": "1GiB", "size": "4GiB"},
		// Rules and a server as in inFrontOf.
		"mcpServers": map[string]any{"large": map[string]any{"url": server.URL}},
		"servers":    map[string]any{"large": map[string]any{"trustAnnotations": true}},
	}, &undo)
	if err != nil {
		return spent, err
	}
	python := languages()[0]
	if err := airlock.run(ctx, python, python.trivial, nil); err != nil {
		return spent, err
	}
	var file string
	if spent[0], err = airlock.spend(ctx, fmt.Sprintf(code, size), &file); err != nil {
		return spent, err
	}
	var read int
	if spent[1], err = airlock.spend(ctx, fmt.Sprintf(readingProgram, file), &read); err == nil && read != size {
		err = fmt.Errorf("the next run read %d bytes, not %d", read, size)
	}
	return spent, err
}

// spend takes a run and measures what it uses. Of Airlock's memory it is the peak since the last call.
func (f *face) spend(ctx context.Context, code string, data any) (s spending, err error) {
	pid := f.process.Pid
	// 5 sets the peak to the present size (proc(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return s, err
	}
	before, err := processorTime(pid)
	if err != nil {
		return s, err
	}
	peak, stop := sandboxPeak(pid)
	took, err := timed(func() error { return f.run(ctx, languages()[0], code, data) })
	stop()
	if err != nil {
		return s, err
	}
	if err := rest(ctx, time.Second); err != nil { // in which the sandbox is removed
		return s, err
	}
	after, err := processorTime(pid)
	if err != nil {
		return s, err
	}
	highest, err := peakMemory(pid)
	return spending{took[0], after - before, highest, *peak}, err
}

// sandboxPeak reads the memory of all processes below Airlock, and keeps the highest sum, until stop is called.
func sandboxPeak(airlock int) (peak *float64, stop func()) {
	peak = new(float64)
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(sampledEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			// Processes that end meanwhile make it incomplete: the next sum counts.
			if use, err := memoryOf(withAllBelow(family(), airlock)[1:]); err == nil {
				*peak = max(*peak, use.proportional)
			}
		}
	})
	return peak, func() { close(done); all.Wait() }
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory returns the most memory that a process has had, in megabytes (10⁶ bytes).
func peakMemory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	match := peakLine.FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("the status of process %d has no VmHWM", pid)
	}
	kilobytes, err := strconv.ParseFloat(string(match[1]), 64)
	return kilobytes * 1024 / 1e6, err
}

// rowsOverHTTP is an MCP server with the tool "rows", whose result is a text of so many bytes.
func rowsOverHTTP() *httptest.Server {
	const line = "2026-11-30,order 4711,12 pieces of soap,3.20 EUR each,delivered\n"
	server := mcp.NewServer(&mcp.Implementation{Name: "large", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "rows", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Bytes int `json:"bytes"`
		}) (*mcp.CallToolResult, any, error) {
			text := strings.Repeat(line, in.Bytes/len(line)+1)[:in.Bytes]
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: true}))
}
