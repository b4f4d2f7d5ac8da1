package main

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// asksOnce is a program that makes one call and returns how it ended.
const asksOnce = `
try:
    await create_directory({"path": "DIR/one"})
    result = "made"
except ToolError as e:
    result = e.type`

// A suspended run goes on with an error for its code when its question is denied or expires, also while no daemon is
// there. One that is cancelled ends. No call is made, and nothing is left of it (issue 29).
func TestSuspendedRunsWithoutAnAnswer(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms")
	d.start()
	ends := func(run, want string) {
		t.Helper()
		got, text := until(t, d.session, run, func(s runState) bool { return s.State == "done" })
		if end := string(got.Data) + got.Error.Type; end != want {
			t.Errorf("got %+v, %s, want %s", got, text, want)
		}
		d.awaitNothingStored()
	}

	run := d.beginCode(asksOnce)
	d.awaitSuspended(1)
	deny := testenv.AtTerminal(t, d.install.command("approvals", "deny", d.asked(1)[0]))
	if out, err := deny.CombinedOutput(); err != nil {
		t.Fatalf("airlock approvals deny: %v\n%s", err, out)
	}
	ends(run, `"ApprovalDenied"`)

	run = d.beginCode(asksOnce)
	d.awaitSuspended(2)
	call(t, d.session, "cancel_run", map[string]any{"run_id": run})
	ends(run, "Killed")
	if open, err := d.open(); err != nil || len(open) > 0 {
		t.Errorf("got the questions %q, %v, want none of a cancelled run", open, err)
	}
	d.kill()
	d.start()
	if n := d.records("run_end"); n != 2 {
		t.Errorf("%d runs have ended, want 2", n)
	}

	run = d.beginCode(asksOnce)
	d.awaitSuspended(3)
	d.kill()
	d.changeRun(run, func(stored map[string]any) {
		stored["Open"].([]any)[0].(map[string]any)["Expires"] = "2026-01-01T00:00:00Z"
	})
	d.start()
	ends(run, `"ApprovalTimeout"`)
	d.ended(3, 0)
	d.stop()
}

// The question of a suspended run expires at its time, and the code goes on (issue 29).
func TestQuestionsOfSuspendedRunsExpire(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms", "limits: {approvalTimeout: 10s}")
	d.start()
	run := d.beginCode(asksOnce)
	d.awaitSuspended(1)
	got, text := until(t, d.session, run, func(s runState) bool { return s.State == "done" })
	if string(got.Data) != `"ApprovalTimeout"` || d.records("run_resume") != 1 {
		t.Errorf("got %+v, %s, want a run that goes on", got, text)
	}
	d.ended(1, 0)
	d.awaitNothingStored()
	d.stop()
}

// A daemon that ends suspends the runs that wait, also before runs.suspendAfter (issue 29).
func TestRunsAreSuspendedByTheEnd(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "1h")
	d.start()
	run := d.beginCode(asksOnce)
	d.asked(1)
	d.drain()
	if n := d.records("run_suspend"); n != 1 {
		t.Errorf("the run was suspended %d times, want once", n)
	}
	d.start()
	d.approve(d.asked(1)[0])
	got, text := until(t, d.session, run, func(s runState) bool { return s.State == "done" })
	if string(got.Data) != `"made"` {
		t.Errorf("got %+v, %s", got, text)
	}
	d.ended(1, 1)
	d.awaitNothingStored()
	d.stop()
}
