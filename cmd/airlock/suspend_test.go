package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// suspending is a host whose person answers each question once the run that asks is suspended.
type suspending struct {
	*testing.T
	session *mcp.ClientSession
	dir     string // that the server may use
	log     string
}

func newSuspending(t *testing.T) *suspending {
	t.Helper()
	i := newInstallation(t, "runs: {suspendAfter: 200ms}\naudit: {path: audit.jsonl}\n", "node", "python")
	config, err := os.ReadFile(i.file)
	if err == nil { // so that its tools ask
		err = os.WriteFile(i.file, bytes.ReplaceAll(config, []byte("allow: ['*']"), nil), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &suspending{T: t, dir: i.dir, log: filepath.Join(i.home, "audit.jsonl")}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			for !s.isSuspended() {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve this call"}}, nil
		},
	})
	cmd := i.command("mcp", "--config", i.file)
	cmd.Stderr = t.Output()
	if s.session, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.session.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// records returns how many records of a kind the log has.
func (s *suspending) records(kind string) int { return s.occurrences(`"kind":"` + kind + `"`) }

// occurrences returns how often a text is in the log.
func (s *suspending) occurrences(of string) (n int) {
	segments, err := filepath.Glob(filepath.Join(s.log, "audit-*.jsonl"))
	if err != nil {
		s.Error(err)
	}
	for _, segment := range segments {
		if info, err := os.Stat(segment); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(segment)
		if err != nil {
			s.Error(err)
		}
		n += bytes.Count(text, []byte(of))
	}
	return n
}

// isSuspended reports whether a run is suspended now.
func (s *suspending) isSuspended() bool { return s.records("run_suspend") > s.records("run_resume") }

// A program that waits for a person is suspended, and goes on as if nothing but time had passed.
func TestRunsAreSuspendedWhileTheyWait(t *testing.T) {
	testenv.Sandbox(t)
	for _, test := range []struct {
		name, language, code, want string
		suspended                  int
		made                       []string
	}{
		{"loop", "python", `
from servers.files import create_directory
print("before")
for i in range(3):
    await create_directory({"path": f"DIR/py-loop-{i}"})
    print("made", i)
result = "looped"`, `"looped"`, 3, []string{"py-loop-0", "py-loop-1", "py-loop-2"}},
		{"gather", "python", `
import asyncio, threading, hashlib, os
from servers.files import create_directory
data = os.urandom(50 << 20)
digest = hashlib.sha256(data).hexdigest()
kept = open("/tmp/kept", "w+"); kept.write("kept")
ticks = []
go = threading.Event()
thread = threading.Thread(target=lambda: (go.wait(), ticks.append("thread")))
thread.start()
try:
    await asyncio.gather(*(create_directory({"path": f"DIR/py-gather-{i}"}) for i in range(4)))
finally:
    kept.seek(0)
    go.set(); thread.join()
result = [kept.read(), ticks, digest == hashlib.sha256(data).hexdigest()]`, `["kept",["thread"],true]`, 1,
			[]string{"py-gather-0", "py-gather-1", "py-gather-2", "py-gather-3"}},
		{"loop", "node", `
import { create_directory } from "/workspace/servers/files/index.js";
console.log("before");
for (let i = 0; i < 3; i++) {
  await create_directory({ path: ` + "`DIR/js-loop-${i}`" + ` });
  console.log("made", i);
}
export default "looped";`, `"looped"`, 3, []string{"js-loop-0", "js-loop-1", "js-loop-2"}},
		{"all", "node", `
import { create_directory } from "/workspace/servers/files/index.js";
import { openSync, writeSync, readFileSync } from "node:fs";
const data = Buffer.alloc(50 << 20, "abc");
const file = openSync("/tmp/kept", "w+");
writeSync(file, "kept");
let ended = false;
try {
  await Promise.all([0, 1, 2, 3].map((i) => create_directory({ path: ` + "`DIR/js-all-${i}`" + ` })));
} finally {
  writeSync(file, "!");
  ended = true;
}
export default [readFileSync("/tmp/kept", "utf8"), data.every((byte, i) => byte === 97 + (i % 3)), ended];`,
			`["kept!",true,true]`, 1, []string{"js-all-0", "js-all-1", "js-all-2", "js-all-3"}},
	} {
		t.Run(test.language+" "+test.name, func(t *testing.T) {
			s := newSuspending(t)
			got, text := call(t, s.session, "run_code", map[string]any{"language": test.language,
				"code": strings.ReplaceAll(test.code, "DIR", s.dir)})
			if !got.OK || string(got.Data) != test.want {
				t.Errorf("got %+v, %s, want %s", got, text, test.want)
			}
			if strings.Contains(test.name, "loop") && !strings.Contains(text, "before\nmade 0\nmade 1\nmade 2\n") {
				t.Errorf("got the output %q", text)
			}
			suspended, resumed := s.records("run_suspend"), s.records("run_resume")
			if suspended < test.suspended || resumed != suspended {
				t.Errorf("suspended %d times and resumed %d times, want at least %d", suspended, resumed,
					test.suspended)
			}
			for _, name := range test.made {
				if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
					t.Error(err)
				}
			}
			if calls := s.records("intent"); calls != len(test.made) {
				t.Errorf("%d calls were made, want %d", calls, len(test.made))
			}
		})
	}
}
