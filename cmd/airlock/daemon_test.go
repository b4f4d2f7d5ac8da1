package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// ownProgram is the real program, after testenv.OwnHome.
func ownProgram() string { return filepath.Join(filepath.Dir(os.Getenv("AIRLOCK_RUNSC")), "airlock") }

// airlock runs the real program and returns what it printed, and its exit code.
func airlock(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(ownProgram(), args...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run() // the exit code shows the result
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// awaitRun waits until the daemon has a run.
func awaitRun(t *testing.T) {
	t.Helper()
	testenv.Await(t, "a run", func() bool {
		status, _, _ := airlock(t, "status", "--json")
		return !strings.Contains(status, `"runs":0`)
	})
}

// A daemon in the background serves hosts until it is stopped, and one at a time.
func TestADaemonInTheBackground(t *testing.T) {
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	if _, stderr, code := airlock(t, "status"); code != 1 || !strings.Contains(stderr, "no daemon is running") {
		t.Errorf("status without a daemon: got %d, %s", code, stderr)
	}
	url, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0")
	if code != 0 || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("serve --detach: got %d, %s, %s", code, url, stderr)
	}
	defer airlock(t, "stop")
	status, stderr, code := airlock(t, "status", "--json")
	var at struct{ URL string }
	if err := json.Unmarshal([]byte(status), &at); err != nil || code != 0 || at.URL != strings.TrimSpace(url) {
		t.Errorf("status: got %d, %s, %s", code, status, stderr)
	}
	if _, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0"); code != 2 ||
		!strings.Contains(stderr, "serves this state directory already") {
		t.Errorf("a second one: got %d, %s", code, stderr)
	}
	log, err := os.ReadFile(filepath.Join(os.Getenv("AIRLOCK_HOME"), "serve.log"))
	if err != nil || !regexp.MustCompile(
		`(?m)^time=2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z airlock: the console is at `).Match(log) {
		t.Errorf("its log has no times: %v\n%s", err, log)
	}
	if _, stderr, code := airlock(t, "stop"); code != 0 || !strings.Contains(stderr, "has ended") {
		t.Errorf("stop: got %d, %s", code, stderr)
	}
	if _, stderr, code := airlock(t, "stop"); code != 1 || !strings.Contains(stderr, "no daemon is running") {
		t.Errorf("stop without a daemon: got %d, %s", code, stderr)
	}
}

// joinedHost is a host whose `airlock mcp` has joined a daemon.
type joinedHost struct {
	*mcp.ClientSession
	stderr *testenv.Output
}

func joinHost(t *testing.T) joinedHost {
	t.Helper()
	cmd := exec.Command(ownProgram(), "mcp", "-v")
	h := joinedHost{stderr: &testenv.Output{}}
	cmd.Stderr = h.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	var err error
	if h.ClientSession, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil); err != nil {
		t.Fatalf("%v: %s", err, h.stderr)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("a host's end: %v: %s", err, h.stderr)
		}
	})
	return h
}

// counter is a server with one tool, which counts its calls.
func counter(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			calls.Add(1)
			return nil, map[string]any{}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL, calls
}

// Five hosts continue when their daemon is killed: open requests end with an error and are not
// repeated automatically, and the next requests are answered. The hosts report it.
func TestADaemonIsKilledWhileHostsAreConnected(t *testing.T) {
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	t.Setenv("AIRLOCK_CONFIG", "airlock.yaml")
	url, calls := counter(t)
	configuration := fmt.Sprintf(
		"mcpServers: {counter: {url: %q}}\nservers: {counter: {trustAnnotations: true}}\nsandbox: {timeout: 10m}\n",
		url)
	if err := os.WriteFile("airlock.yaml", []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, says string
		again      bool // another daemon is started, for which hosts wait a while
	}{
		{"another daemon", "from now on", true},
		{"no daemon", "this process answers alone from now on", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls.Store(0)
			if _, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0"); code != 0 {
				t.Fatal(stderr)
			}
			defer airlock(t, "stop")
			var hosts []joinedHost
			for range 5 {
				hosts = append(hosts, joinHost(t))
			}
			status, _, _ := airlock(t, "status", "--json")
			var daemon struct{ PID, Hosts, Runs int }
			if err := json.Unmarshal([]byte(status), &daemon); err != nil || daemon.Hosts != 5 {
				t.Fatalf("got %s, want five hosts", status)
			}
			var lost sync.WaitGroup
			for _, h := range hosts {
				lost.Go(func() {
					_, err := h.CallTool(t.Context(),
						&mcp.CallToolParams{Name: "run_code",
							Arguments: map[string]any{"language": "python",
								"code": "import time\nfrom servers.counter import count\nawait count({})\n" +
									"time.sleep(600)"}})
					if err == nil || !strings.Contains(err.Error(), "send it again") {
						t.Errorf("a call under way: got %v, want that it is to be sent again", err)
					}
				})
			}
			testenv.Await(t, "five calls", func() bool { return calls.Load() >= 5 })
			for daemon.Runs < 5 {
				status, _, code := airlock(t, "status", "--json")
				if err := json.Unmarshal([]byte(status), &daemon); err != nil || code != 0 {
					t.Fatalf("got %d, %s", code, status)
				}
			}
			if err := syscall.Kill(daemon.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			lost.Wait()
			if test.again {
				if _, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0"); code != 0 {
					t.Fatal(stderr)
				}
			}
			for _, h := range hosts {
				if answer, text := call(t, h.ClientSession, "run_code",
					map[string]any{"language": "python", "code": "result = 6 * 7"}); string(answer.Data) != "42" {
					t.Errorf("afterwards: got %s", text)
				}
				if said := h.stderr.String(); !strings.Contains(said, "the daemon has ended") ||
					!strings.Contains(said, test.says) {
					t.Errorf("the host is told %q, want that %s", said, test.says)
				}
				if n := calls.Load(); n != 5 {
					t.Errorf("five calls were made %d times", n)
				}
			}
		})
	}
}
