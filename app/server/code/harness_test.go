package code

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func newServer(t testing.TB) (*Server, *fakeRuns) {
	t.Helper()
	runs := newFakeRuns()
	s, err := New(newFakeTools(t), runs, Options{Version: "test", Principal: "user:ann",
		ServerIDs: func() []string { return []string{"crm", "files"} }})
	if err != nil {
		t.Fatal(err)
	}
	return s, runs
}

// serve starts the server on a pair of pipes; both ends close with the test,
// which fails when Serve does.
func serve(t testing.TB, s *Server) (io.ReadCloser, io.WriteCloser) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.WithoutCancel(t.Context()), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return fromServer, toServer
}

// connect returns a client's session in the given revision.
func connect(t testing.TB, s *Server, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	r, w := serve(t, s)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: r, Writer: w},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting in %s: %v", version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// versions are the revisions whose clients are served.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// inEveryVersion runs a test once per revision.
func inEveryVersion(t *testing.T, test func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns)) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s, runs := newServer(t)
			session := connect(t, s, version, nil)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("got version %q, want %q", got, version)
			}
			test(t, session, runs)
		})
	}
}

func callTool(t testing.TB, session *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return res
}

// textOf returns the texts of a result, a line break between them.
func textOf(res *mcp.CallToolResult) string {
	var texts []string
	for _, content := range res.Content {
		texts = append(texts, content.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n")
}

func send(t testing.TB, w io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// testdataFiles returns the files of a directory under testdata, at least one.
func testdataFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files for %q (%v), want some", len(files), pattern, err)
	}
	slices.Sort(files)
	return files
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
