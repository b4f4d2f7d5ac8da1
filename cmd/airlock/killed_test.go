package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// beginCode begins a run in the background and returns its ID.
func (d *durable) beginCode(code string) string {
	d.Helper()
	run, text := call(d.T, d.session, "run_code", map[string]any{"language": "python", "background": true,
		"code": "from servers.files import create_directory\nfrom client import ToolError\n" +
			strings.ReplaceAll(code, "DIR", d.dir)})
	if run.RunID == "" {
		d.Fatal(text)
	}
	return run.RunID
}

// await polls until a condition holds.
func (d *durable) await(what string, holds func() bool) {
	d.Helper()
	for !holds() {
		select {
		case <-d.Context().Done():
			d.Fatalf("%s did not come about", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// files returns how many files of the suspended runs have a suffix.
func (d *durable) files(suffix string) int {
	d.Helper()
	found, err := filepath.Glob(filepath.Join(d.stored(), "*"+suffix))
	if err != nil {
		d.Fatal(err)
	}
	return len(found)
}

// ended checks how often the run ended, and how many calls were made.
func (d *durable) ended(ends, calls int) {
	d.Helper()
	if gotEnds, gotCalls := d.records("run_end"), d.records("intent"); gotEnds != ends || gotCalls != calls {
		d.Errorf("the run ended %d times and made %d calls, want %d and %d", gotEnds, gotCalls, ends, calls)
	}
}

// A daemon that is killed while it writes the state of a run has not suspended it: the run is over (issue 29).
func TestKilledDuringTheCheckpoint(t *testing.T) {
	testenv.Sandbox(t)
	for { // until the kill hits the time at which the state is being written
		d := newDurable(t, "20ms")
		d.start()
		run := d.beginCode(`
import os
data = os.urandom(100 << 20)
await create_directory({"path": "DIR/one"})`)
		d.await("a state", func() bool { return d.files(".state") > 0 })
		d.kill()
		if d.files(".run") > 0 {
			continue
		}
		d.start()
		d.awaitInterrupted(run, "it had made no call")
		d.ended(1, 0)
		d.awaitNothingStored()
		d.stop()
		return
	}
}

// A run whose daemon is killed while its sandbox starts again is over, because its code may have gone on: it ends once,
// with the calls that it had made (issue 29).
func TestKilledDuringTheRestore(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms")
	d.start()
	run := d.beginCode(`
import time
await create_directory({"path": "DIR/one"})
time.sleep(3600)`)
	d.awaitSuspended(1)
	d.approve(d.asked(1)[0])
	d.await("the restore", func() bool { return d.readRun(run)["Continued"] == true })
	d.kill()
	d.start()
	d.awaitInterrupted(run, "files/create_directory (ok)")
	d.kill()
	d.start() // it has the result from the audit log only
	if now, text := call(t, d.session, "get_run", map[string]any{"run_id": run}); now.Error.Type != "Interrupted" ||
		!strings.Contains(text, "files/create_directory (ok)") {
		t.Errorf("after another kill: got %+v, %s", now, text)
	}
	d.ended(1, 1)
	d.awaitNothingStored()
	d.stop()
}

// The code of a run whose daemon is killed while a call is being made gets an error for this call, which is not made
// again (issue 29).
func TestKilledDuringTheCall(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms")
	d.start()
	// The server waits for somebody to write to it.
	fifo := filepath.Join(d.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	run := d.beginCode(`
from servers.files import edit_file
ends = []
calls = [
    lambda: edit_file({"path": "DIR/fifo", "edits": [{"oldText": "a", "newText": "b"}]}),
    lambda: create_directory({"path": "DIR/two"}),
]
for call in calls:
    try:
        await call()
        ends.append("made")
    except ToolError as e:
        ends.append(e.type)
result = ends`)
	d.awaitSuspended(1)
	d.approve(d.asked(1)[0])
	d.await("the call", func() bool { return d.records("intent") == 1 })
	d.kill()
	if end, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil || end.Close() != nil {
		t.Error(err)
	}
	d.start()
	d.approve(d.asked(1)[0]) // of the second call
	got, text := until(t, d.session, run, func(s runState) bool { return s.State == "done" })
	if !got.OK || string(got.Data) != `["Interrupted","made"]` {
		t.Errorf("got %+v, %s", got, text)
	}
	d.ended(1, 2)
	d.awaitNothingStored()
	d.stop()
}
