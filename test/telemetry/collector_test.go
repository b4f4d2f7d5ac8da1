// Package telemetry proves what Airlock exports, with a real OpenTelemetry Collector
// and a real parser of Prometheus' text format.
package telemetry

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// collector is a running OpenTelemetry Collector that writes what it gets to a file.
type collector struct {
	t        *testing.T
	endpoint string
	file     string
	cmd      *exec.Cmd
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	program := filepath.Join(testenv.RepoRoot(t), "bin", "otelcol")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v (run `make bin/otelcol` first)", err)
	}
	dir := t.TempDir()
	address := freeAddress(t)
	c := &collector{t: t, endpoint: "http://" + address, file: filepath.Join(dir, "got.jsonl")}
	config := fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {file: {path: %q}}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [file]}
    metrics: {receivers: [otlp], exporters: [file]}
    logs: {receivers: [otlp], exporters: [file]}
`, address, c.file)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command(program, "--config", "file:"+filepath.Join(dir, "config.yaml"))
	c.cmd.Stderr = &strings.Builder{}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("the collector does not listen: %v\n%s", err, c.cmd.Stderr)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// stop ends the collector and returns what it got.
func (c *collector) stop() got {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("the collector: %v\n%s", err, c.cmd.Stderr)
	}
	raw, err := os.ReadFile(c.file)
	if err != nil {
		c.t.Fatal(err)
	}
	g := got{raw: string(raw), spans: map[string]span{}, metrics: map[string]bool{}, service: map[string]bool{}}
	lines := bufio.NewScanner(strings.NewReader(g.raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var message exported
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			c.t.Fatal(err)
		}
		g.add(message)
	}
	return g
}

// got is what a collector was sent.
type got struct {
	raw     string
	spans   map[string]span // by name
	metrics map[string]bool
	service map[string]bool // values of service.name
	logs    []string
}

type span struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Attributes   []attribute
	Status       struct{ Code int }
}

type attribute struct {
	Key   string
	Value struct{ StringValue string }
}

// of returns the text of an attribute.
func (s span) of(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

type resource struct{ Attributes []attribute }

// exported is a line of the collector's file: OTLP as JSON.
type exported struct {
	ResourceSpans []struct {
		Resource   resource
		ScopeSpans []struct{ Spans []span }
	}
	ResourceMetrics []struct {
		Resource     resource
		ScopeMetrics []struct{ Metrics []struct{ Name string } }
	}
	ResourceLogs []struct {
		Resource  resource
		ScopeLogs []struct {
			LogRecords []struct{ Body struct{ StringValue string } }
		}
	}
}

func (g *got) add(m exported) {
	from := func(r resource) { g.service[span{Attributes: r.Attributes}.of("service.name")] = true }
	for _, r := range m.ResourceSpans {
		from(r.Resource)
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				g.spans[s.Name] = s
			}
		}
	}
	for _, r := range m.ResourceMetrics {
		from(r.Resource)
		for _, scope := range r.ScopeMetrics {
			for _, metric := range scope.Metrics {
				g.metrics[metric.Name] = true
			}
		}
	}
	for _, r := range m.ResourceLogs {
		from(r.Resource)
		for _, scope := range r.ScopeLogs {
			for _, record := range scope.LogRecords {
				g.logs = append(g.logs, record.Body.StringValue)
			}
		}
	}
}
