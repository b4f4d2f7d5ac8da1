package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// durable is a daemon that is killed while runs wait for a person, and started again.
type durable struct {
	*suspending
	install *installation
	token   string
	auditor string // a token with the scope audit; empty until it is needed
	address string // of the daemon: http://127.0.0.1:PORT
	daemon  *exec.Cmd
}

// newDurable returns an installation for Python programs.
func newDurable(t *testing.T, suspendAfter string, settings ...string) *durable {
	t.Helper()
	return newDurableFor(t, []string{"python"}, suspendAfter, settings...)
}

// newDurableFor is newDurable with the images of languages.
func newDurableFor(t *testing.T, languages []string, suspendAfter string, settings ...string) *durable {
	t.Helper()
	i := newInstallation(t, "runs: {suspendAfter: "+suspendAfter+"}\naudit: {path: audit.jsonl}\n"+
		strings.Join(settings, "\n"), languages...)
	config, err := os.ReadFile(i.file)
	if err == nil { // so that its tools ask
		err = os.WriteFile(i.file, bytes.ReplaceAll(config, []byte("allow: ['*']"), nil), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &durable{suspending: &suspending{T: t, dir: i.dir, log: filepath.Join(i.home, "audit.jsonl")}, install: i}
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(i.airlock("tokens", "create", "host", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	d.token = made.Token
	t.Cleanup(d.kill)
	return d
}

// start starts the daemon and opens a session with it.
func (d *durable) start() {
	d.Helper()
	d.daemon = d.install.command("serve", "--config", d.install.file, "--listen", "127.0.0.1:0")
	d.daemon.Stderr = d.Output()
	out, err := d.daemon.StdoutPipe()
	if err == nil {
		err = d.daemon.Start()
	}
	if err != nil {
		d.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		d.Fatal(err)
	}
	d.address = strings.TrimSpace(line)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	if d.session, err = client.Connect(d.Context(), &mcp.StreamableClientTransport{
		Endpoint:   d.address + "/mcp",
		HTTPClient: testenv.Bearer(d.token), DisableStandaloneSSE: true, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		d.Fatal(err)
	}
}

// kill ends the daemon at once.
func (d *durable) kill() {
	if d.daemon == nil {
		return
	}
	_ = d.daemon.Process.Kill()
	_ = d.daemon.Wait() // it was killed
	d.daemon = nil
}

// stop ends the session, and the daemon in order.
func (d *durable) stop() {
	d.Helper()
	if err := d.session.Close(); err != nil {
		d.Error(err)
	}
	d.drain()
}

// drain ends the daemon in order, while its host is connected.
func (d *durable) drain() {
	d.Helper()
	if err := d.daemon.Process.Signal(os.Interrupt); err != nil {
		d.Error(err)
	}
	if err := d.daemon.Wait(); err != nil {
		d.Errorf("airlock serve: %v", err)
	}
	d.daemon = nil
}

// open returns the IDs of the open questions.
func (d *durable) open() (ids []string, err error) {
	var open struct {
		Approvals []struct{ ID string }
	}
	out, err := d.install.command("approvals", "list", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &open)
	}
	for _, q := range open.Approvals {
		ids = append(ids, q.ID)
	}
	return ids, err
}

// posted returns how many questions have a file. A process for each look at the open ones would take the machine.
func (d *durable) posted() int {
	d.Helper()
	files, err := filepath.Glob(filepath.Join(d.install.home, "approvals", "*.question.json"))
	if err != nil {
		d.Error(err)
	}
	return len(files)
}

// asked waits until so many questions are open and returns their IDs.
func (d *durable) asked(want int) []string {
	d.Helper()
	for begun := time.Now(); d.Context().Err() == nil && time.Since(begun) < hangs; {
		if d.posted() >= want {
			ids, err := d.open()
			if err != nil {
				d.Fatal(err)
			}
			if len(ids) == want {
				return ids
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.Fatalf("%d questions are posted, want %d", d.posted(), want)
	return nil
}

// approve approves a question.
func (d *durable) approve(id string) {
	d.Helper()
	cmd := testenv.AtTerminal(d, d.install.command("approvals", "approve", "--yes", id))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("airlock approvals approve: %v\n%s", err, out)
	}
}

// awaitSuspended waits until a run has been suspended for the nth time.
func (d *durable) awaitSuspended(n int) {
	d.Helper()
	for begun := time.Now(); d.records("run_suspend") < n && d.Context().Err() == nil; {
		if time.Since(begun) > hangs {
			d.Fatalf("%d runs were suspended, and %d have ended", d.records("run_suspend"), d.records("run_end"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hangs is how long a wait takes at most, so that a run that has ended does not stop all tests.
const hangs = 5 * time.Minute

// secretless fails the test if a file of the suspended runs has a text in it.
func (d *durable) secretless(canary string) {
	d.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Join(d.install.home, "suspended"),
		func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			if info, infoErr := e.Info(); infoErr != nil || info.Mode().Perm() != 0o600 {
				d.Errorf("%s: others can read it: %v", path, infoErr)
			}
			if bytes.Contains(data, []byte(canary)) {
				d.Errorf("%s can be read", path)
			}
			return err
		})
	if err != nil || files != 3 {
		d.Errorf("%d files, %v; want the run, its state and the template", files, err)
	}
}

// Programs that wait for a person go on after the daemon was killed or stopped: with their memory, files and output,
// and no call is made twice.
func TestSuspendedRunsSurviveTheDaemon(t *testing.T) {
	testenv.Sandbox(t)
	const canary = "canary-7f3a9c"
	for _, test := range []struct{ name, language, code, want string }{
		{"python", "python", `
import asyncio, hashlib, os, time
from servers.files import create_directory
print("before")
memory = "canary-" + "7f3a9c"
data = os.urandom(20 << 20); digest = hashlib.sha256(data).digest()
kept = open("/tmp/kept", "w+"); kept.write("kept")
began = time.monotonic()
await create_directory({"path": "DIR/one"})
print("one")
await asyncio.gather(create_directory({"path": "DIR/two"}), create_directory({"path": "DIR/three"}))
kept.seek(0)
result = [memory[:6], kept.read(), digest == hashlib.sha256(data).digest(), time.monotonic() >= began]`,
			`["canary","kept",true,true]`},
		{"node", "node", `
import { create_directory } from "/workspace/servers/files/index.js";
console.log("before");
const memory = "canary-" + "7f3a9c";
const data = Buffer.alloc(20 << 20, "abc");
await create_directory({ path: "DIR/one" });
console.log("one");
await Promise.all([create_directory({ path: "DIR/two" }), create_directory({ path: "DIR/three" })]);
export default [memory.slice(0, 6), data.every((byte, i) => byte === 97 + (i % 3))];`,
			`["canary",true]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDurableFor(t, []string{test.language}, "200ms")
			d.start()
			background := test.name == "python"
			run, text := call(t, d.session, "run_code", map[string]any{"language": test.language,
				"background": background, "code": strings.ReplaceAll(test.code, "DIR", d.dir)})
			if run.RunID == "" || !background && run.State != "PENDING" {
				t.Fatalf("got %+v, %s", run, text)
			}
			d.awaitSuspended(1)
			d.secretless(canary)
			d.kill() // while it waits
			d.start()
			var now runState
			testenv.Await(t, "its stored state is checked", func() bool {
				now, text = call(t, d.session, "get_run", map[string]any{"run_id": run.RunID})
				return now.State != "queued"
			})
			if now.State != "running" || !strings.Contains(now.Stdout, "before") {
				t.Errorf("got %+v, %s", now, text)
			}
			d.approve(d.asked(1)[0])
			d.awaitSuspended(2)
			two := d.asked(2)
			d.approve(two[0]) // the other call still waits
			testenv.Await(t, "two calls", func() bool { return d.occurrences(`"outcome":"ok"`) >= 2 })
			d.stop()
			d.start()
			d.approve(d.asked(1)[0])
			got, text := until(t, d.session, run.RunID, func(s runState) bool { return s.State == "done" })
			if !got.OK || string(got.Data) != test.want || !strings.Contains(got.Stdout, "before\none\n") {
				t.Errorf("got %+v, %s, want %s", got, text, test.want)
			}
			var made []string
			entries, err := os.ReadDir(d.dir)
			for _, e := range entries {
				made = append(made, e.Name())
			}
			if err != nil || !slices.Equal(made, []string{"one", "three", "two"}) {
				t.Errorf("got %v, %v", made, err)
			}
			if intents, ends := d.records("intent"), d.records("run_end"); intents != 3 || ends != 1 {
				t.Errorf("%d calls were made and the run ended %d times, want 3 and 1", intents, ends)
			}
			if left, err := os.ReadDir(filepath.Join(d.install.home, "suspended")); err != nil || len(left) > 0 {
				t.Errorf("%v and %v are left", left, err)
			}
			d.stop()
		})
	}
}

// A run whose call was answered, and that waits for a sandbox, survives the end of the daemon, between the answer and
// the restore: neither its state nor its call's answer is lost, and the end does not wait for a sandbox (issue 29).
func TestAnsweredRunsSurviveTheDaemon(t *testing.T) {
	testenv.Sandbox(t)
	for _, how := range []string{"stopped", "stopped when forced", "killed"} {
		t.Run(how, func(t *testing.T) {
			forced := how == "stopped when forced"
			d := newDurable(t, "20ms", "sandbox: {maxSandboxes: 1, pool: 0}",
				"serve: {drainTime: 1s, trustedProxies: [127.0.0.1]}")
			d.start()
			run := d.begin("one")
			busy, text := call(t, d.session, "run_code", map[string]any{"language": "python", "background": true,
				"code": "import time\ntime.sleep(3600)"})
			until(t, d.session, busy.RunID, func(s runState) bool { return s.State == "running" })
			if busy.RunID == "" {
				t.Fatal(text)
			}
			if forced { // it waits for a slot, and its question stays open
				if out, err := d.install.command("runs", "resume", run).CombinedOutput(); err != nil {
					t.Fatalf("airlock runs resume: %v\n%s", err, out)
				}
			} else {
				d.approve(d.asked(1)[0])
				d.await("the stored answer", func() bool { return d.hasAnswer(run) })
			}
			others := 0 // the end of the busy run, which the end of a daemon records
			if how == "killed" {
				d.kill()
			} else {
				d.stop()
				others = 1
			}
			if d.records("run_end") > others { // it took the sandbox of the busy run and ended in the first daemon
				return
			}
			d.start()
			if forced {
				d.approve(d.asked(1)[0])
			}
			if got, text := until(t, d.session, run, func(s runState) bool { return s.State == "done" }); !got.OK {
				t.Errorf("got %+v, %s", got, text)
			}
			if intents := d.records("intent"); intents != 1 {
				t.Errorf("%d calls were made, want 1", intents)
			}
			if open, err := d.open(); err != nil || len(open) > 0 {
				t.Errorf("got the questions %q, %v, want no other one", open, err)
			}
			d.awaitNothingStored()
			d.stop()
		})
	}
}

// hasAnswer reports whether the answer to the only call of a suspended run is stored, and the run does not go on.
func (d *durable) hasAnswer(run string) bool {
	d.Helper()
	stored := d.readRun(run)
	calls, _ := stored["Open"].([]any)
	if len(calls) != 1 || stored["Continued"] == true {
		return false
	}
	call, _ := calls[0].(map[string]any)
	return call["Answer"] != nil
}

// An operator suspends a run that waits, and lets it go on before the answer; no other run.
func TestRunsAreSuspendedByHand(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurable(t, "1h")
	d.start()
	runs := func(verb, id, want string) {
		t.Helper()
		out, err := d.install.command("runs", verb, id).CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != !strings.Contains(want, "not") {
			t.Errorf("airlock runs %s: got %q, %v, want %q", verb, out, err, want)
		}
	}
	run, _ := call(t, d.session, "run_code", map[string]any{"language": "python", "background": true, "code": `
import asyncio
from servers.files import create_directory
ticks = 0
async def tick():
    global ticks
    while True:
        await asyncio.sleep(0.01)
        ticks += 1
task = asyncio.create_task(tick())
await create_directory({"path": "` + d.dir + `/one"})
result = ticks > 0`})
	runs("suspend", "run_0", "does not wait for a person, so it is not suspended")
	asked := d.asked(1)
	runs("resume", run.RunID, "the run is not suspended")
	runs("suspend", run.RunID, "is suspended until")
	d.awaitSuspended(1)
	if out, err := d.install.command("runs", "list", "--config", d.install.file).Output(); err != nil ||
		!bytes.Contains(out, []byte("suspended")) {
		t.Errorf("got the list %s, %v, want a suspended run", out, err)
	}
	var shown struct {
		State     string
		Suspended string `json:"suspended_since"`
	}
	if out, err := d.install.command("runs", "show", run.RunID, "--json", "--config", d.install.file).Output(); err !=
		nil || json.Unmarshal(out, &shown) != nil || shown.State != "suspended" || shown.Suspended == "" {
		t.Errorf("got the run %s, %v, want a suspended one, since when", out, err)
	}
	var waiting struct {
		Approvals []struct {
			RunID     string `json:"run_id"`
			Suspended string `json:"suspended_since"`
			Principal string
		}
	}
	list := func(flags ...string) []byte {
		t.Helper()
		cmd := d.install.command(append([]string{"approvals", "list"}, flags...)...)
		cmd.Env = append(cmd.Env, "AIRLOCK_CONFIG="+d.install.file)
		out, err := cmd.Output()
		if err != nil {
			t.Error(err)
		}
		return out
	}
	if out := list("--json"); json.Unmarshal(out, &waiting) != nil || len(waiting.Approvals) != 1 ||
		waiting.Approvals[0].Suspended == "" || waiting.Approvals[0].Principal == "" {
		t.Errorf("got the questions %s, want one of a suspended run, since when and for whom", out)
	}
	if out := list(); !bytes.Contains(out, []byte("run "+run.RunID+" suspended since")) {
		t.Errorf("got the questions %s, want one of a suspended run", out)
	}
	if metrics := d.metrics(); !strings.Contains(metrics, "airlock_run_suspended 1\n") {
		t.Errorf("got the metrics %s, want a suspended run", metrics)
	}
	if now, text := call(t, d.session, "get_run", map[string]any{"run_id": run.RunID}); now.Suspended == "" ||
		len(now.Waiting) != 1 {
		t.Errorf("got %+v, %s, want a suspended run that waits for a person", now, text)
	}
	var state struct{ Runs, Suspended int }
	if out, err := d.install.command("status", "--json").Output(); err != nil ||
		json.Unmarshal(out, &state) != nil || state.Runs != 1 || state.Suspended != 1 {
		t.Errorf("got the status %s, %v, want a suspended run", out, err)
	}
	runs("resume", run.RunID, "goes on")
	testenv.Await(t, "the run goes on", func() bool { return d.records("run_resume") > 0 })
	d.approve(asked[0])
	if got, text := until(t, d.session, run.RunID, func(s runState) bool { return s.State == "done" }); !got.OK ||
		string(got.Data) != "true" {
		t.Errorf("got %+v, %s", got, text)
	}
	if metrics := d.metrics(); !strings.Contains(metrics, "airlock_run_suspended 0\n") {
		t.Errorf("got the metrics %s, want no suspended run", metrics)
	}
	d.stop()
}

// metrics returns what the daemon answers to Prometheus, without the labels.
func (d *durable) metrics() string {
	d.Helper()
	if d.auditor == "" {
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(d.install.airlock("tokens", "create", "prometheus", "--scope", "audit",
			"--json")), &made); err != nil {
			d.Fatal(err)
		}
		d.auditor = made.Token
	}
	answer, err := testenv.Bearer(d.auditor).Get(d.address + "/metrics")
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(string(text), "")
}
