package codegen_test

import (
	"fmt"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// BenchmarkGenerate1500Tools writes the wrappers of 1,500 tools in both
// languages: the corpus, and as much of it again as is missing.
func BenchmarkGenerate1500Tools(b *testing.B) {
	servers, count := []catalog.Server{}, 0
	for round := 0; count < 1500; round++ {
		for _, server := range corpus(b) {
			server.ID = fmt.Sprintf("%s-%d", server.ID, round)
			server.Tools = server.Tools[:min(len(server.Tools), 1500-count)]
			count += len(server.Tools)
			servers = append(servers, server)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
			if tree := generate(b, servers, lang); tree.Tools != 1500 {
				b.Fatalf("got %d tools, want 1500", tree.Tools)
			}
		}
	}
}
