package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// parked is how many runs wait at the same time in TestManyRunsWait, unless AIRLOCK_PARKED names another number.
const parked = 6

// warm is how many runs have used what the daemon keeps for all of them.
const warm = 4

// Issue 29: runs that wait for people take no sandbox, little of the disk and little of the memory of the daemon, also
// those whose questions wait because too many are open. They survive a kill, and all of them go on.
func TestManyRunsWait(t *testing.T) {
	testenv.Sandbox(t)
	number, err := strconv.Atoi(cmp.Or(os.Getenv("AIRLOCK_PARKED"), strconv.Itoa(parked)))
	if err != nil {
		t.Fatal(err)
	}
	d := newDurableFor(t, []string{"node", "python"}, "20ms, suspendedSize: 2GiB", "sandbox: {pool: 0, queue: 1000}",
		"limits: {approvalTimeout: 12h}")
	d.start()
	var before int64
	var runs []string
	for i := range number {
		if i == warm {
			d.awaitSuspended(warm)
			before = d.memory()
		}
		name := filepath.Join(d.dir, fmt.Sprint("made-", i))
		program := map[string]any{"language": "python", "background": true, "code": fmt.Sprintf(
			"from servers.files import create_directory\nawait create_directory({'path': %q})\nresult = %d", name, i)}
		if i%2 == 1 {
			program["language"] = "node"
			program["code"] = fmt.Sprintf(`import { create_directory } from "/workspace/servers/files/index.js";
await create_directory({ path: %q });
export default %d;`, name, i)
		}
		run, text := call(t, d.session, "run_code", program)
		if run.RunID == "" {
			t.Fatal(text)
		}
		runs = append(runs, run.RunID)
		d.awaitSuspended(len(runs) - 4) // so that few wait for a sandbox
	}
	d.awaitSuspended(number)
	var disk int64
	entries, err := os.ReadDir(d.stored())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		disk += info.Size()
	}
	most := before + int64(number-warm)*200_000 + 64<<20
	after := d.memory()
	d.await("less memory", func() bool { return d.memory() <= most }) // garbage is collected within minutes
	t.Logf("%d runs: %d bytes on disk in %d files; the daemon has %d bytes of memory, %d at first, %d with %d runs",
		number, disk, len(entries), d.memory(), after, before, warm)
	const bases = 12 << 20 // of the two images
	if most := int64(number)*1_000_000 + bases; disk > most {
		t.Errorf("%d bytes are on disk, want at most %d", disk, most)
	}
	metrics := d.metrics()
	for _, want := range []string{fmt.Sprintf("airlock_run_suspended %d\n", number), "airlock_sandbox_in_use 0\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("got the metrics %s, want %s", metrics, want)
		}
	}
	d.kill()
	began := time.Now()
	d.start()
	t.Logf("the next daemon is ready after %v", time.Since(began))
	stop, approved := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(approved)
		d.approveAll(stop, 0)
	}()
	testenv.Await(t, "all runs have ended", func() bool { return d.records("run_end") >= number })
	t.Logf("all runs have ended after %v", time.Since(began))
	close(stop)
	testenv.Receive(t, "the end of the approvals", approved)
	if number < 10 { // the results of the newest ones are kept
		got, text := until(t, d.session, runs[number-1], func(s runState) bool { return s.State == "done" })
		if !got.OK || string(got.Data) != fmt.Sprint(number-1) {
			t.Errorf("got %+v, %s", got, text)
		}
	}
	if ok := d.values(`"outcome":"`, `"kind":"run_end"`)["ok"]; ok != number {
		t.Errorf("%d runs ended well, want %d", ok, number)
	}
	for i := range number {
		if _, err := os.Stat(filepath.Join(d.dir, fmt.Sprint("made-", i))); err != nil {
			t.Error(err)
		}
	}
	d.ended(number, number)
	d.awaitNothingStored()
	d.stop()
}

// memory returns the proportional set size of the daemon, in bytes, without its sandboxes.
func (d *durable) memory() int64 {
	d.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", d.daemon.Process.Pid))
	if err != nil {
		d.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nPss:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		d.Fatal(err)
	}
	return kilobytes << 10
}
