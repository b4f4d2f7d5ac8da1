package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The reported end of a run is correct even if all CPUs are busy and the host is notified late.
func TestLimitsWhereTheMachineIsBusy(t *testing.T) {
	testenv.OwnHome(t, "node", "python")
	for range 2 * runtime.NumCPU() {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			busy.Process.Kill()
			busy.Wait() // killed
		})
	}
	for _, test := range []struct{ name, language, code, want string }{
		{"Node's heap", "node", `const all = []; for (;;) all.push(new Array(100_000).fill("x"));`, "MemoryLimit"},
		{"memory", "python", `all = []
while True:
    all.append(bytearray(16 << 20))`, "MemoryLimit"},
		{"the disk, in Node", "node", `import { appendFileSync } from "node:fs";
const piece = Buffer.alloc(4 << 20, 1);
for (;;) appendFileSync("/tmp/full", piece);`, "DiskLimit"},
		{"the disk, in Python", "python", `with open("/tmp/full", "wb") as file:
    while True:
        file.write(bytes(4 << 20))`, "DiskLimit"},
		{"a fork bomb", "python", `import os
while True:
    os.fork()`, "ProcessLimit"},
		{"a bomb of threads", "node", `import { Worker } from "node:worker_threads";
for (;;) new Worker("setInterval(() => {}, 1000)", { eval: true });`, "ProcessLimit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			program, config := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "airlock.yaml")
			for file, text := range map[string]string{program: test.code, config: "sandbox: {timeout: 10m}\n"} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			stdout, stderr, code := airlock(t, "run", "--config", config, "--lang", test.language, program)
			var envelope struct {
				Result struct {
					Error struct{ Type, Message string }
				}
			}
			if err := json.Unmarshal([]byte(stdout), &envelope); err != nil {
				t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
			}
			if got := envelope.Result.Error; got.Type != test.want || code != 1 {
				t.Errorf("got exit code %d and %s (%s), want 1 and %s", code, got.Type, got.Message, test.want)
			}
		})
	}
}
