package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// A backup of a state that a daemon serves, with runs and requests under way, can be checked and restored; the review
// of access then knows the same tokens and their use (issue 27.12).
func TestABackupWhileTheDaemonServes(t *testing.T) {
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	url, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0")
	if code != 0 {
		t.Fatalf("serve --detach: got %d, %s", code, stderr)
	}
	defer airlock(t, "stop")
	url = strings.TrimSpace(url)
	must := func(args ...string) string {
		t.Helper()
		out, stderr, code := airlock(t, args...)
		if code != 0 {
			t.Fatalf("airlock %s: got %d, %s", strings.Join(args, " "), code, stderr)
		}
		return out
	}
	token := strings.TrimSpace(must("tokens", "create", "used", "--for", "ann", "--scope", "run,agents:supervised"))
	must("tokens", "create", "unused", "--for", "bob", "--scope", "audit")

	program := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(program, []byte("result = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var busy sync.WaitGroup
	begun := make(chan struct{}, 2)
	for _, act := range []func(n int){
		func(int) { airlock(t, "run", program) },
		func(int) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v1/agents", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+token)
			if answer, err := http.DefaultClient.Do(req); err != nil {
				t.Error(err)
			} else {
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("the daemon answers %s", answer.Status)
				}
			}
		},
	} {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				act(n)
				if n == 0 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range 2 {
		testenv.Receive(t, "the begin of the work", begun)
	}
	file := filepath.Join(t.TempDir(), "state.backup")
	must("state", "backup", file)
	_, stderr, code = airlock(t, "state", "rotate")
	if code == 0 || !strings.Contains(stderr, "while agents are served") {
		t.Errorf("rotating the keys of a daemon that serves: got %d, %s", code, stderr)
	}
	close(done)
	busy.Wait()
	must("state", "verify", file)
	before := accessOf(t, must("audit", "access", "--json"))
	must("stop")

	t.Setenv("AIRLOCK_HOME", t.TempDir())
	must("state", "restore", file)
	must("audit", "verify")
	if after := accessOf(t, must("audit", "access", "--json")); len(after) != 2 || after[0] != before[0] ||
		after[1] != before[1] {
		t.Errorf("the restored state has %v, want %v", after, before)
	}
	if before[0] != "ann agents:supervised,run true" || before[1] != "bob audit false" {
		t.Errorf("got %v, want one token that was used and one that was not", before)
	}
	if runs := must("runs", "list"); !strings.Contains(runs, "run_") {
		t.Errorf("the restored state has the runs %q, want some", runs)
	}
	// Neither is older than a day.
	if all := accessOf(t, must("audit", "access", "--json", "--unused", "1d")); len(all) != 0 {
		t.Errorf("unused for a day: %v, want none", all)
	}
	if all := accessOf(t, must("audit", "access", "--json", "--principal", "bob")); len(all) != 1 {
		t.Errorf("of bob: %v, want one", all)
	}
}

// accessOf returns the principal, the rights and whether there was a use, of each token.
func accessOf(t *testing.T, text string) (all []string) {
	t.Helper()
	var answer struct {
		Access []struct {
			Kind, Principal string
			Rights          []string
			Used            string `json:"last_used"`
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, one := range answer.Access {
		all = append(all, fmt.Sprint(one.Principal, " ", strings.Join(one.Rights, ","), " ", one.Used != ""))
	}
	return all
}
