package cluster

import (
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/telemetry"
)

// issue 28: the trace of a request that another node forwards goes on at its node, below the span of the hop.
func TestATraceCrossesTheHop(t *testing.T) {
	g := newGroup(t)
	collector, err := telemetry.StartCollector(t.Context(), filepath.Join(testenv.RepoRoot(t), "bin", "otelcol"),
		t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Kill)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.Endpoint)
	nodes := []*node{g.node("a").serve(), g.node("b").serve()}
	_, token := nodes[0].token("run")
	host := (&rotating{nodes: nodes, token: token}).host(t, "/mcp", revisions[0]) // the session is at a
	for range 2 {                                                                 // one of them is sent to b
		call(t, host, "run_code", map[string]any{"language": "python", "code": "result = 1"})
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range nodes {
		n.end(syscall.SIGTERM)
	}
	got, err := collector.Stop()
	if err != nil {
		t.Fatal(err)
	}
	forwarded := regexp.MustCompile(`"traceId":"(\w+)","spanId":"(\w+)"[^{}]*"name":"airlock.node.forward"`)
	below := 0
	for _, span := range forwarded.FindAllStringSubmatch(got.Raw, -1) {
		below += len(regexp.MustCompile(`"traceId":"`+span[1]+`","spanId":"\w+","parentSpanId":"`+span[2]+
			`"[^{}]*"name":"tools/call run_code"`).FindAllString(got.Raw, -1))
	}
	if below != 1 {
		t.Errorf("%d requests of tools are below a hop, want 1: %s", below, got.Raw)
	}
}
