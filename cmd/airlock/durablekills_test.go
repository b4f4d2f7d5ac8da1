package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// However often the daemon is killed while a program makes calls that people approve, no call is made twice, and the
// run ends once.
func TestKilledWhileRunsWait(t *testing.T) {
	testenv.Sandbox(t)
	left, err := strconv.Atoi(cmp.Or(os.Getenv("AIRLOCK_KILLS"), strconv.Itoa(kills)))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	ended, carriedOut := map[string]int{}, 0
	for left > 0 {
		d := newDurableFor(t, []string{"node", "python"}, "20ms")
		d.start()
		// The server adds a line for each call that reaches it, so that a repeated one shows.
		effects := filepath.Join(d.dir, "effects")
		if err := os.WriteFile(effects, []byte("END\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		language := []string{"python", "node"}[random.IntN(2)]
		run, text := call(t, d.session, "run_code", map[string]any{"language": language, "background": true,
			"code": strings.ReplaceAll(withEffects[language], "FILE", effects)})
		if run.RunID == "" {
			t.Fatal(text)
		}
		stop := make(chan struct{})
		var approving sync.WaitGroup
		approving.Go(func() { d.approveAll(stop, random.IntN(600)) })
		testenv.Await(t, "the run begins", func() bool { return d.records("run_start") > 0 })
		for ; left > 0 && d.records("run_end") == 0; left-- {
			within := 1500
			if random.IntN(2) == 0 { // soon after the next suspension
				within = 300
				for n := d.records("run_suspend"); d.records("run_suspend") == n && d.records("run_end") == 0; {
					time.Sleep(10 * time.Millisecond)
				}
			}
			time.Sleep(time.Duration(random.IntN(within)) * time.Millisecond)
			d.kill()
			d.start()
		}
		testenv.Await(t, "the run has ended", func() bool { return d.records("run_end") > 0 })
		close(stop)
		approving.Wait()
		for hash, n := range d.values(`"arguments_hash":"`, `"kind":"intent"`) {
			if n > 1 {
				t.Errorf("call %s was made %d times", hash, n)
			}
		}
		seen, err := os.ReadFile(effects)
		if err != nil {
			t.Error(err)
		}
		for i := range 6 {
			switch n := bytes.Count(seen, fmt.Appendf(nil, "effect %d\n", i)); {
			case n > 1:
				t.Errorf("the server carried out call %d %d times", i, n)
			case n == 1:
				carriedOut++
			}
		}
		if ends := d.records("run_end"); ends != 1 {
			t.Errorf("the run ended %d times", ends)
		}
		now, text := until(t, d.session, run.RunID, func(s runState) bool { return s.State == "unknown" })
		if now.State == "done" {
			ended[cmp.Or(now.Error.Type, string(now.Data))]++
		} else if d.values(`"outcome":"`, `"kind":"run_end"`)["ok"] == 0 { // its result was lost with a daemon
			t.Errorf("got %+v, %s", now, text)
		}
		d.stop()
	}
	t.Logf("%d calls were carried out, runs ended as %v", carriedOut, ended)
}

// approveAll approves every question until stop is closed, each time after so many milliseconds. That a question is
// gone meanwhile is not an error.
func (d *durable) approveAll(stop <-chan struct{}, milliseconds int) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(max(milliseconds, 20)) * time.Millisecond):
		}
		if d.posted() == 0 {
			continue
		}
		open, err := d.open()
		if err != nil {
			continue
		}
		for _, id := range open {
			_ = testenv.AtTerminal(d, d.install.command("approvals", "approve", "--yes", id)).Run()
		}
	}
}

// values counts the values after a text in the records that have another text.
func (d *durable) values(after, in string) map[string]int {
	d.Helper()
	segments, err := filepath.Glob(filepath.Join(d.log, "audit-*.jsonl"))
	counts := map[string]int{}
	for _, segment := range segments {
		text, readErr := os.ReadFile(segment)
		err = errors.Join(err, readErr)
		for line := range strings.Lines(string(text)) {
			if _, rest, ok := strings.Cut(line, after); ok && strings.Contains(line, in) {
				value, _, _ := strings.Cut(rest, `"`)
				counts[value]++
			}
		}
	}
	if err != nil {
		d.Error(err)
	}
	return counts
}
