package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// airlock runs the real program and returns what it printed.
func airlock(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(filepath.Dir(os.Getenv("AIRLOCK_RUNSC")), "airlock"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("airlock %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// daemon is the health report of a running daemon.
type daemon struct {
	PID int
	URL string
}

func status(t *testing.T) daemon {
	t.Helper()
	var d daemon
	if err := json.Unmarshal([]byte(airlock(t, "status", "--json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// C-020: with ten thousand idle connections, every request gets its own answer or a request
// to retry. The load program measures the rate; this test does not.
func TestManyRequestsBesideIdleConnections(t *testing.T) {
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0")
	defer airlock(t, "stop")
	d := status(t)
	var callers []*caller
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		c, err := newCaller(t.Context(), d.URL, airlock(t, "tokens", "create", name), len(callers))
		if err != nil {
			t.Fatal(err)
		}
		callers = append(callers, c)
	}
	before, err := useOf(d.PID)
	if err != nil {
		t.Fatal(err)
	}
	const many = 10_000
	waiting, err := open(d.URL, many)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.close()
	if n := len(waiting.conns); n < many {
		t.Logf("this system gives a process %d connections in place of %d", n, many)
	}
	beside, err := useOf(d.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d idle connections take %d kB in all", len(waiting.conns), (beside.memory-before.memory)/1000)
	got := send(t.Context(), callers, 1000, 3*time.Second)
	t.Log(got)
	if got.answered == 0 || got.wrong > 0 || got.lost > 0 {
		t.Errorf("answers went wrong or were lost: %q", got.problems)
	}
	res, err := http.Get(d.URL + "/healthz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("afterwards: %v, %v", res, err)
	}
	res.Body.Close()
	if after := status(t); after.PID != d.PID {
		t.Errorf("the daemon is process %d, want %d still", after.PID, d.PID)
	}
}
