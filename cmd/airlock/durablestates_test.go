package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// A stored run that Airlock has not written so, or that is older than the audit log, does not go on: it ends as
// interrupted, or has ended, and no call is made for it.
func TestStoredRunsAreRefused(t *testing.T) {
	testenv.Sandbox(t)
	d := newDurableFor(t, []string{"node", "python"}, "20ms")
	d.start()
	begin := func(name string) string {
		run, text := call(t, d.session, "run_code", map[string]any{"language": "python", "background": true, "code": `
from servers.files import create_directory
await create_directory({"path": "` + d.dir + "/" + name + `1"})
await create_directory({"path": "` + d.dir + "/" + name + `2"})`})
		if run.RunID == "" {
			t.Fatal(text)
		}
		return run.RunID
	}
	stored := filepath.Join(d.install.home, "suspended")
	copied := func(to, from string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	// These are stored at three times: before the first call, before the second one, and after the end.
	replayed := begin("replayed")
	d.awaitSuspended(1)
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	copied(first, stored)
	d.approve(d.asked(1)[0])
	d.awaitSuspended(2)
	ended := begin("ended")
	d.awaitSuspended(3)
	copied(second, stored)
	for _, id := range d.asked(2) {
		d.approve(id)
	}
	d.awaitSuspended(4)
	d.kill()
	file := func(dir, run string) string { return filepath.Join(dir, run+".run") }
	copied(stored, second) // replayed is that of before its second call
	if err := os.Rename(file(first, replayed), file(stored, "run_00000000000000000000000000000001")); err != nil {
		t.Fatal(err) // that of another run
	}
	sealed, err := os.ReadFile(file(stored, ended))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"cut": sealed[:len(sealed)/2], "empty": nil, "plain": []byte("{}")} {
		if err := os.WriteFile(file(stored, "run_"+name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.start()
	if got, text := until(t, d.session, ended, func(s runState) bool { return s.State == "done" }); got.Error.Type !=
		"Interrupted" || !strings.Contains(text, "older than the audit log") ||
		!strings.Contains(text, "files/create_directory (ok)") {
		t.Errorf("got %+v, %s", got, text)
	}
	if n := d.occurrences("the stored state of the suspended run was refused"); n != 5 {
		t.Errorf("%d were refused, want the replay of a run that has ended, and 4 files", n)
	}
	if intents := d.records("intent"); intents != 3 {
		t.Errorf("%d calls were made, want the 3 that were approved", intents)
	}
	if left, err := os.ReadDir(stored); err != nil || len(left) > 0 {
		t.Errorf("%v and %v are left", left, err)
	}
	d.stop()
}

// kills is how often TestKilledWhileRunsWait kills the daemon, unless AIRLOCK_KILLS names another number.
const kills = 4

// withEffects are programs whose calls each add a line to a file, one after another.
var withEffects = map[string]string{
	"python": `
from servers.files import edit_file
from client import ToolError
ends = []
for i in range(6):
    try:
        await edit_file({"path": "FILE", "edits": [{"oldText": "END", "newText": f"effect {i}\nEND"}]})
        ends.append("made")
    except ToolError as e:
        ends.append(e.type)
result = ends`,
	"node": `
import { edit_file } from "/workspace/servers/files/index.js";
const ends = [];
for (let i = 0; i < 6; i++) {
  try {
    await edit_file({ path: "FILE", edits: [{ oldText: "END", newText: "effect " + i + "\nEND" }] });
    ends.push("made");
  } catch (e) {
    ends.push(e.type);
  }
}
export default ends;`,
}
