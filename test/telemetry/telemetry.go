// Package telemetry proves what Airlock exports, with a real OpenTelemetry Collector
// and a real parser of Prometheus' text format.
package telemetry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Collector is a running OpenTelemetry Collector that writes what it gets to a file.
type Collector struct {
	Endpoint string // for OTLP over HTTP

	file string
	cmd  *exec.Cmd
	said *bytes.Buffer
}

// startTime bounds how long a collector takes until it listens.
const startTime = time.Minute

// StartCollector starts a collector (make bin/otelcol) whose files are in a directory,
// and waits until it listens. The caller ends it with Stop or Kill.
func StartCollector(ctx context.Context, program, directory string) (_ *Collector, err error) {
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("%w (run `make bin/otelcol` first)", err)
	}
	address, release, err := testenv.ReserveAddress()
	if err != nil {
		return nil, err
	}
	defer release() // then the collector listens there
	c := &Collector{Endpoint: "http://" + address, file: filepath.Join(directory, "got.jsonl"), said: &bytes.Buffer{}}
	config := fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {file: {path: %q}}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [file]}
    metrics: {receivers: [otlp], exporters: [file]}
    logs: {receivers: [otlp], exporters: [file]}
`, address, c.file)
	configuration := filepath.Join(directory, "collector.yaml")
	if err := os.WriteFile(configuration, []byte(config), 0o600); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(program, "--config", "file:"+configuration)
	c.cmd.Stderr = c.said
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			return c, conn.Close()
		}
		select {
		case <-ctx.Done():
			c.Kill()
			return nil, fmt.Errorf("the collector does not listen: %s", c.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends a collector whose data is not asked for. After Stop it does nothing.
func (c *Collector) Kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill() // it is waited for
		_ = c.cmd.Wait()
	}
}

// Stop ends the collector and returns what it got.
func (c *Collector) Stop() (*Got, error) {
	err := c.cmd.Process.Signal(syscall.SIGTERM)
	if err = errors.Join(err, c.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("the collector: %w\n%s", err, c.said)
	}
	raw, err := os.ReadFile(c.file)
	if err != nil {
		return nil, err
	}
	g := &Got{Raw: string(raw), Spans: map[string]Span{}, Metrics: map[string]bool{}, Services: map[string]bool{}}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var message exported
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return nil, err
		}
		g.add(message)
	}
	return g, lines.Err()
}
