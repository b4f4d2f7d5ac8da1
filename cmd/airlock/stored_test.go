package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// begin begins a run that waits for a person, and returns its ID once it is suspended.
func (d *durable) begin(name string) string {
	d.Helper()
	before := d.records("run_suspend")
	run, text := call(d.T, d.session, "run_code", map[string]any{"language": "python", "background": true, "code": `
from servers.files import create_directory
await create_directory({"path": "` + filepath.Join(d.dir, name) + `"})`})
	if run.RunID == "" {
		d.Fatal(text)
	}
	d.awaitSuspended(before + 1)
	return run.RunID
}

// stored is the directory of the suspended runs.
func (d *durable) stored() string { return filepath.Join(d.install.home, "suspended") }

// key returns the key of the suspended runs.
func (d *durable) key() *agekey.Key {
	d.Helper()
	key, err := agekey.Load(filepath.Join(d.install.home, "keys", "suspended.key"))
	if err != nil {
		d.Fatal(err)
	}
	return key
}

// readRun returns what is stored of a run, or nil.
func (d *durable) readRun(run string) (stored map[string]any) {
	d.Helper()
	sealed, err := os.ReadFile(filepath.Join(d.stored(), run+".run"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	plain, openErr := agekey.Open(sealed, d.key())
	if err := errors.Join(err, openErr); err != nil {
		d.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(plain), run+"\n")), &stored); err != nil {
		d.Fatal(err)
	}
	return stored
}

// changeRun changes what is stored of a run, as the Airlock of this installation would store it.
func (d *durable) changeRun(run string, change func(stored map[string]any)) {
	d.Helper()
	stored := d.readRun(run)
	change(stored)
	text, err := json.Marshal(stored)
	if err != nil {
		d.Fatal(err)
	}
	sealed, err := agekey.Seal(d.key().Recipient(), []byte(run+"\n"), text)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.stored(), run+".run"), sealed, 0o600)
	}
	if err != nil {
		d.Fatal(err)
	}
}

// stateOf returns the path of a run's state.
func (d *durable) stateOf(run string) string {
	return filepath.Join(d.stored(), d.readRun(run)["Sandbox"].(map[string]any)["State"].(string))
}

// flip changes a byte in the middle of a file.
func (d *durable) flip(path string) {
	d.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		text[len(text)/2] ^= 1
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		d.Fatal(err)
	}
}

// awaitInterrupted waits until a run has ended as interrupted, with a text in its message.
func (d *durable) awaitInterrupted(run, why string) {
	d.Helper()
	got, text := until(d.T, d.session, run, func(s runState) bool { return s.State == "done" })
	if got.Error.Type != "Interrupted" || !strings.Contains(text, why) {
		d.Errorf("got %+v, %s, want %q", got, text, why)
	}
}

// awaitNothingStored waits until nothing is stored of suspended runs.
func (d *durable) awaitNothingStored() {
	d.Helper()
	for {
		left, err := os.ReadDir(d.stored())
		if err == nil && len(left) == 0 {
			return
		}
		select {
		case <-d.Context().Done():
			d.Fatalf("%v and %v are left", left, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// States that are not those of their runs, and those of another version or image, are refused before anything is done:
// their runs end as interrupted, and nobody is asked (issue 29).
func TestStoredStatesAreRefused(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms")
	d.start()
	flipped, cut, foreign, version, image := d.begin("a"), d.begin("b"), d.begin("c"), d.begin("d"), d.begin("e")
	d.kill()
	d.flip(d.stateOf(flipped))
	if err := os.Truncate(d.stateOf(cut), 1000); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(d.stateOf(version))
	if err == nil {
		err = os.WriteFile(d.stateOf(foreign), other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.changeRun(version, func(stored map[string]any) {
		stored["Sandbox"].(map[string]any)["Format"] = "runsc v0.0.0-20200101000000-000000000000"
	})
	d.changeRun(image, func(stored map[string]any) { stored["Image"] = "python@sha256:another" })
	d.start()
	for run, why := range map[string]string{flipped: "was changed", cut: "was changed", foreign: "was changed",
		version: "another version of gVisor", image: "image of its sandbox has changed"} {
		d.awaitInterrupted(run, why)
	}
	if ends, intents := d.records("run_end"), d.records("intent"); ends != 5 || intents != 0 {
		t.Errorf("%d runs ended and %d calls were made, want 5 and none", ends, intents)
	}
	d.awaitNothingStored()

	// Another template.
	run := d.begin("f")
	d.kill()
	bases, err := filepath.Glob(filepath.Join(d.stored(), "*.base"))
	if err != nil || len(bases) != 1 {
		t.Fatalf("got %v, %v, want one template", bases, err)
	}
	d.flip(bases[0])
	d.start()
	d.awaitInterrupted(run, "was changed")
	d.awaitNothingStored()

	// A change while Airlock runs shows when the run is to go on.
	run = d.begin("g")
	d.flip(d.stateOf(run))
	d.approve(d.asked(1)[0])
	d.awaitInterrupted(run, "lost or was changed")
	if n := d.occurrences("the stored state of the suspended run was refused"); n != 1 {
		t.Errorf("%d records say that a state was refused, want 1", n)
	}
	d.awaitNothingStored()
	d.stop()
}

// A run that another version of gVisor has saved ends once, with the journal of what it had called (issue 29).
func TestSavedByAnotherVersionOfGVisor(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms")
	d.start()
	run := d.beginCode(`
await create_directory({"path": "DIR/one"})
await create_directory({"path": "DIR/two"})`)
	d.awaitSuspended(1)
	d.approve(d.asked(1)[0])
	d.awaitSuspended(2)
	d.kill()
	d.changeRun(run, func(stored map[string]any) {
		stored["Sandbox"].(map[string]any)["Format"] = "runsc v0.0.0-20200101000000-000000000000"
	})
	d.start()
	d.awaitInterrupted(run, "another version of gVisor")
	d.awaitInterrupted(run, "files/create_directory (ok)")
	d.ended(1, 1)
	d.awaitNothingStored()
	d.stop()
}

// If the states of suspended runs take as much as they may, a run stays paused: the operator reads which setting to
// change, and the run ends as it would have (issue 29).
func TestSuspendedSizeIsBounded(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "20ms, suspendedSize: 64MiB")
	d.start()
	run, text := call(t, d.session, "run_code", map[string]any{"language": "python", "background": true, "code": `
import os
from servers.files import create_directory
data = os.urandom(64 << 20)
await create_directory({"path": "` + filepath.Join(d.dir, "one") + `"})
result = len(data)`})
	if run.RunID == "" {
		t.Fatal(text)
	}
	asked := d.asked(1)
	out, err := d.install.command("runs", "suspend", run.RunID).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("hint: raise runs.suspendedSize")) {
		t.Errorf("airlock runs suspend: got %s, %v, want the setting to change", out, err)
	}
	d.approve(asked[0])
	if got, text := until(t, d.session, run.RunID, func(s runState) bool { return s.State == "done" }); !got.OK ||
		string(got.Data) != "67108864" {
		t.Errorf("got %+v, %s", got, text)
	}
	if n := d.records("run_suspend"); n != 0 {
		t.Errorf("the run was suspended %d times, want none", n)
	}
	d.stop()
}
