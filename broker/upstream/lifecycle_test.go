package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// TestMain lets a test run this binary as an Airlock that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("AIRLOCK_TEST_VICTIM") != "" {
		beVictim()
	}
	os.Exit(m.Run())
}

// beVictim starts an upstream that starts another process, prints both IDs and waits to be killed.
func beVictim() {
	set, err := upstream.New([]upstream.Config{{ID: "good", Command: os.Getenv("AIRLOCK_TEST_VICTIM")}}, nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	set.Connect(ctx)
	raw, err := set.Call(ctx, "good", "spawn", nil)
	if err != nil {
		panic(err)
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil {
		panic(err)
	}
	fmt.Println(result.Content[0].Text)
	select {}
}

func TestCloseLeavesNoProcess(t *testing.T) {
	for _, mode := range []string{"good", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			set, notes := fake(t, mode)
			raw, err := set.Call(t.Context(), mode, "spawn", nil)
			if err != nil {
				t.Fatal(err)
			}
			server, grandchild := number(t, notes.Lines(t, "started")[0]), number(t, text(t, raw))
			if !alive(server) || !alive(grandchild) {
				t.Fatalf("got processes %d and %d not running", server, grandchild)
			}
			if err := set.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
			if alive(server) || alive(grandchild) {
				t.Errorf("got a process that outlived Close: server %v, its child %v", alive(server), alive(grandchild))
			}
			if _, err := set.Call(t.Context(), mode, "echo", nil); !errors.Is(err, upstream.ErrClosed) {
				t.Errorf("a call after Close: got %v, want ErrClosed", err)
			}
			if err := set.Close(); err != nil {
				t.Errorf("closing again: %v", err)
			}
		})
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	server := sdkServer()
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	good, _ := upstreamtest.Fake(t, "good")
	modern, _ := upstreamtest.Fake(t, "modern")
	silent, _ := upstreamtest.Fake(t, "silent")
	silent.StartTimeout = 200 * time.Millisecond
	set := connect(t, nil, good, modern, silent, upstream.Config{ID: "remote", URL: web.URL})
	for _, id := range []string{"good", "modern", "remote"} {
		if _, err := set.Call(t.Context(), id, "echo", nil); err != nil {
			t.Errorf("calling %s: %v", id, err)
		}
	}
	set.Close()
	testenv.Await(t, "the last goroutine", func() bool { return !strings.Contains(stacks(), "broker/upstream.") })
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buffer := make([]byte, 1<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}

func TestCloseEndsRunningCalls(t *testing.T) {
	set, notes := fake(t, "good")
	done := make(chan error)
	go func() {
		_, err := set.Call(t.Context(), "good", "slow", nil)
		done <- err
	}()
	testenv.Await(t, "the call at the server", func() bool { return len(notes.Lines(t, "call slow")) == 1 })
	set.Close()
	if err := <-done; !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestCloseWhileStarting(t *testing.T) {
	config, notes := upstreamtest.Fake(t, "silent")
	set, err := upstream.New([]upstream.Config{config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{})
	go func() {
		set.Connect(t.Context())
		close(connected)
	}()
	testenv.Await(t, "the server", func() bool { return len(notes.Lines(t, "started")) == 1 })
	if err := set.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	<-connected
	if pid := number(t, notes.Lines(t, "started")[0]); alive(pid) {
		t.Errorf("got process %d alive", pid)
	}
}

// When Airlock is killed, neither a server nor a process that it started survives.
func TestNothingOutlivesAKilledAirlock(t *testing.T) {
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), "AIRLOCK_TEST_VICTIM="+upstreamtest.Program(t))
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild := number(t, strings.TrimSpace(line))
	group, err := syscall.Getpgid(grandchild) // the server leads it
	if err != nil || !alive(group) {
		t.Fatalf("got no server %d: %v", group, err)
	}
	victim.Process.Kill()
	victim.Wait()
	testenv.Await(t, "the end of the server", func() bool { return !alive(group) })
	testenv.Await(t, "the end of what it started", func() bool { return !alive(grandchild) })
}

func TestServerThatDiedComesBack(t *testing.T) {
	set, notes := fake(t, "good")
	first := number(t, notes.Lines(t, "started")[0])
	syscall.Kill(first, syscall.SIGKILL)
	testenv.Await(t, "its end", func() bool { return !alive(first) })
	// A thread of the dying process may still hold the pipe when it is written to.
	var failed *upstream.CallError
	if _, err := set.Call(t.Context(), "good", "echo", nil); err != nil &&
		(!errors.As(err, &failed) || !failed.Retryable) {
		t.Fatalf("the next call: got %v, want none or a retryable one", err)
	}
	if _, err := set.Call(t.Context(), "good", "echo", nil); err != nil {
		t.Fatalf("the call after it: got %v, want a new server", err)
	}
	if started := notes.Lines(t, "started"); len(started) != 2 {
		t.Errorf("got %q, want two starts", started)
	}
}

// A server that dies in every call is not started again and again.
func TestCrashLoopIsSlowedDown(t *testing.T) {
	set, notes := fake(t, "good")
	refused := false
	for range 10 {
		_, err := set.Call(t.Context(), "good", "crash", nil)
		var failed *upstream.CallError
		if !errors.As(err, &failed) || failed.Type != upstream.TransientNetwork {
			t.Fatalf("got %v, want TransientNetwork", err)
		}
		refused = refused || strings.Contains(failed.Message, "not restarted for a while") && failed.Retryable
	}
	if started := len(notes.Lines(t, "started")); started > 4 || !refused {
		t.Errorf("got %d starts for 10 calls (refused %v), want a few, then refusals that are retryable", started,
			refused)
	}
}

func TestChangedListIsReadAgain(t *testing.T) {
	changes := make(chan string, 10)
	config, _ := upstreamtest.Fake(t, "good")
	set := connect(t, &upstream.Options{OnChange: func(id string) { changes <- id }}, config)
	before := names(t, set)
	if _, err := set.Call(t.Context(), "good", "grow", json.RawMessage(`{"name":"new_tool"}`)); err != nil {
		t.Fatal(err)
	}
	if id := <-changes; id != "good" {
		t.Errorf("got a change of %q, want good", id)
	}
	want := append(slices.Clone(before), "new_tool")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, set)); diff != "" {
		t.Errorf("tools differ (-want +got):\n%s", diff)
	}
	if err := set.Refresh(t.Context(), "good"); err != nil {
		t.Errorf("refreshing: %v", err)
	}
	set.Close()
	if extra := len(changes); extra != 0 {
		t.Errorf("got %d more changes for one burst and a refresh without news, want none", extra)
	}
}

func TestListIsReadAgainWhenItIsOld(t *testing.T) {
	changes := make(chan string, 10)
	config, _ := upstreamtest.Fake(t, "brief")
	set := connect(t, &upstream.Options{OnChange: func(id string) { changes <- id }, Refresh: 50 * time.Millisecond},
		config)
	<-changes
	if got := names(t, set); len(got) != 1 || got[0] == "tool_1" {
		t.Errorf("got tools %q, want a newer list", got)
	}
}

func TestRefreshOfWhatIsNotThere(t *testing.T) {
	config, _ := upstreamtest.Fake(t, "exit")
	set := connect(t, nil, config)
	if err := set.Refresh(t.Context(), "exit"); !errors.Is(err, upstream.ErrExited) {
		t.Errorf("got %v, want ErrExited", err)
	}
	if err := set.Refresh(t.Context(), "nobody"); err == nil {
		t.Errorf("got no error for a server that does not exist")
	}
}
