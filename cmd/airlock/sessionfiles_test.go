package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
)

// steps are programs of one session, in order, with the result of each and a part of the text
// for the model.
var steps = []struct{ name, language, code, data, told string }{
	{"a new session is empty", "python", "import os\nresult = os.listdir('/workspace/session')", `[]`, ""},
	{"anything is left there", "python", `
import os
os.chdir('/workspace/session')
os.makedirs('d/e')
open('a.txt', 'w').write('hello')
open('d/e/large.bin', 'wb').write(bytes(range(256)) * 12_000)
open('line\nbreak', 'w').write('x')
os.chmod('a.txt', 0o6755)
os.symlink('/etc/passwd', 'link'); os.link('a.txt', 'hard'); os.mkfifo('fifo')
os.mkdir('empty')
open(b'bytes\xff', 'w')
result = 'left'`, `"left"`, "only regular files are"},
	{"the other language finds it, as files and bytes alone", "node", `
import { appendFileSync, lstatSync, readdirSync, readFileSync, unlinkSync } from "node:fs";
process.chdir("/workspace/session");
const large = readFileSync("d/e/large.bin");
globalThis.result = [readdirSync(".", { recursive: true }).sort(), lstatSync("a.txt").mode & 0o7777, large.length, large[255]];
appendFileSync("a.txt", " from node");
unlinkSync("d/e/large.bin");`, `[["a.txt","d","d/e","d/e/large.bin","hard","line\nbreak"],420,3072000,255]`, ""},
	{"changes are kept, also of a program that fails", "python",
		"open('/workspace/session/failed', 'w')\nraise ValueError('after it')", ``, "ValueError"},
	{"what a program does that is killed is not", "python",
		"import os\nopen('/workspace/session/killed', 'w')\nos.kill(os.getpid(), 9)", ``, "Killed"},
	{"so far", "python",
		"import os\nos.chdir('/workspace/session')\nresult = [sorted(os.listdir()), open('a.txt').read(), " +
			"open('hard').read()]",
		`[["a.txt","failed","hard","line\nbreak"],"hello from node","hello"]`, ""},
	{"too many bytes keep nothing of the run", "node",
		"import { ftruncateSync, openSync } from 'node:fs';\nftruncateSync(openSync('/workspace/session/sparse', " +
			"'w'), 2 ** 23);\nglobalThis.result = 1;", `1`, "more than the 4194304"},
	{"too many files keep nothing of the run", "python",
		"for n in range(1_000_000):\n  open(f'/workspace/session/{n}', 'w').close()", ``, "more than the 50 files"},
	{"a directory that is another thing", "python",
		"import os, shutil\nshutil.rmtree('/workspace/session')\nos.symlink('/', '/workspace/session')\nresult = 1",
		`1`, "/workspace/session itself"},
	{"is an empty one", "node", "globalThis.result = (await import('node:fs')).readdirSync('/workspace/session');",
		`[]`, ""},
}

// Files in /workspace/session stay between the runs of a session, with either
// driver, from the pool; nothing that code leaves there is more than bytes.
func TestFilesStayInASession(t *testing.T) {
	testenv.OwnHome(t, "node", "python")
	daemon := ctrdtest.Run(t)
	const whatDriversDiffer = 4 // steps; the rest is the guests' and the store's
	for driver, test := range map[string]struct {
		settings string
		steps    int
	}{
		"runsc": {"", len(steps)},
		"containerd": {fmt.Sprintf("driver: containerd, containerd: {address: %q}, ", daemon.Address),
			whatDriversDiffer},
	} {
		t.Run(driver, func(t *testing.T) {
			dir := t.TempDir()
			config := fmt.Sprintf(
				"sandbox: {%stimeout: 20s, inodes: 2000}\nsession: {bytes: 4MiB, files: 50}\naudit: {path: %q}\n",
				test.settings, filepath.Join(dir, "audit"))
			file := configured(t, config)
			session := connected(t, file)
			for _, step := range steps[:test.steps] {
				data, told := ran(t, session, step.language, step.code)
				if data != step.data || !strings.Contains(told, step.told) {
					t.Errorf("%s: got %s, want %s; told %q, want %q in it", step.name, data, step.data, told, step.told)
				}
			}
			if driver == "runsc" {
				runsAtOnce(t, session)
				if data, _ := ran(t, connected(t, file), "python",
					"import os\nresult = os.listdir('/workspace/session')"); data != "[]" {
					t.Errorf("another session: got %s, want nothing", data)
				}
			}
		})
	}
}

// A result that is too large for a run's line is in a file of the session, if the session can hold it
// (issue 27.10). A result that it cannot hold removes nothing else.
func TestAResultOf50MBIsKeptInTheSession(t *testing.T) {
	testenv.OwnHome(t, "node", "python")
	const rest = "/workspace/session for the next run"
	steps := []struct{ name, language, code, data, told string }{
		{"Python keeps it", "python", "open('/workspace/session/own', 'w').write('own')\n" +
			"result = ['ä' * 1_000_000] * 25", ``, "all of it is in /workspace/session/large-result.json"},
		{"Node reads it and leaves another one", "node", `
import { readFileSync } from "node:fs";
const rows = JSON.parse(readFileSync("/workspace/session/large-result.json", "utf8"));
globalThis.result = rows.map((row) => row.replaceAll("ä", "öö").slice(0, 1_000_000)).concat([rows.length]);`,
			``, "all of it is in /workspace/session/large-result.json"},
		{"Python reads that one", "python", "import json\n" +
			"rows = json.load(open('/workspace/session/large-result.json'))\n" +
			"result = [len(rows), rows[-1], rows[0][:2], open('/workspace/session/own').read()]", `[26,25,"öö","own"]`,
			""},
		{"Python, more than the session holds", "python", "result = ['x' * 1_000_000] * 70", ``, rest},
		{"Node, more than the session holds", "node",
			"globalThis.result = Array(70).fill('x'.repeat(1_000_000));", ``, rest},
		{"the rest stays", "python", "import os\nresult = os.listdir('/workspace/session')", `["own"]`, ""},
	}
	session := connected(t, configured(t, fmt.Sprintf("audit: {path: %q}\n", filepath.Join(t.TempDir(), "audit"))))
	for _, step := range steps {
		data, told := ran(t, session, step.language, step.code)
		if data != step.data || !strings.Contains(told, step.told) {
			t.Errorf("%s: got %s, want %s; told %q, want %q in it", step.name, data, step.data, told, step.told)
		}
	}
}

// runsAtOnce starts runs of a session that each write the same file and a separate one.
func runsAtOnce(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	var runs sync.WaitGroup
	for n := range 4 {
		runs.Go(func() {
			ran(t, session, "python", fmt.Sprintf(
				"for name in ('shared', 'own-%d'): open('/workspace/session/' + name, 'w').write('%d')\nresult = 1", n,
				n))
		})
	}
	runs.Wait()
	data, _ := ran(t, session, "python",
		"import os\nos.chdir('/workspace/session')\nresult = [sorted(os.listdir()), len(open('shared').read())]")
	if want := `[["own-0","own-1","own-2","own-3","shared"],1]`; data != want {
		t.Errorf("runs at the same time: got %s, want %s", data, want)
	}
}

// ran makes a run and returns its data, which may be empty, and the text for the model.
func ran(t *testing.T, session *mcp.ClientSession, language, code string) (data, told string) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": language, "code": code}})
	if err != nil {
		t.Error(err)
		return "", ""
	}
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			told += text.Text + "\n"
		}
	}
	structured, err := json.Marshal(res.StructuredContent)
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal(structured, &answer); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Error(err)
	}
	return string(answer.Data), told
}

// The files of an Airlock that was killed are gone when the next one has started.
func TestFilesOfAKilledAirlockAreRemoved(t *testing.T) {
	env := testenv.OwnHome(t, "node", "python")
	left := filepath.Join(env.Home, "sessions", "process-of-a-killed-one")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	connected(t, configured(t, fmt.Sprintf("audit: {path: %q}\n", filepath.Join(t.TempDir(), "audit"))))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("got %v, want that it is gone", err)
	}
}
