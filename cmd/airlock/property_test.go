package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// fragments are what hostile and broken programs are made of.
var fragments = map[string][]string{
	"python": {
		"import os, sys, time, threading, subprocess\n", "result = {'a': [1, 2.5, None]}\n",
		"os.write(1, b'{\"ok\":true}\\n' * 3000)\n",
		"os.write(2, bytes(range(256)) * 999)\n", "sys.exit(3)\n", "os._exit(7)\n", "raise ValueError('\\ud800')\n",
		"await 1\n",
		"print('x' * 100000)\n", "def f(): f()\nf()\n", "os.kill(os.getpid(), 11)\n", "while True: pass\n",
		"time.sleep(60)\n",
		"subprocess.run(['sh', '-c', 'echo child; echo err >&2'])\n", "result = float('nan')\n",
		"result = 'y' * 70000\n",
		"threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n", "import servers\n", "(\n", "\x00",
		"sys.stdout.close()\n",
		"for i in range(3, 20):\n    try: os.close(i)\n    except OSError: pass\n", "b = bytearray(1 << 30)\n",
		"del __builtins__\n",
	},
	"node": {
		"globalThis.result = { a: [1, 2.5, null] };\n", "process.exit(3);\n", "process.exitCode = 1;\n",
		"throw new Error('\\ud800');\n",
		"Promise.reject(1);\n", "await new Promise(() => {});\n", "while (true) {}\n",
		"process.kill(process.pid, 'SIGSEGV');\n",
		"console.log('x'.repeat(100000));\n", "globalThis.result = 10n ** 400n;\n",
		"globalThis.result = 'y'.repeat(70000);\n",
		"process.stdout.write(Buffer.alloc(100000, 255));\n", "setInterval(() => {}, 1000);\n",
		"Object.prototype.toJSON = () => 1;\n",
		"const a = []; a.push(a); globalThis.result = a;\n", "function f() { f(); }\nf();\n", "require('fs');\n",
		"({\n", "\x00",
	},
}

// program draws a program of fragments or, now and then, of any bytes at all.
func program(t *rapid.T, language string) []byte {
	if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
		return rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "bytes")
	}
	parts := rapid.SliceOfN(rapid.SampledFrom(fragments[language]), 1, 5).Draw(t, "fragments")
	return []byte(strings.Join(parts, ""))
}

// For every program, a run prints one line of JSON of at most 64 KiB, bounded
// text on stderr, and does not outlive its time.
func TestNoProgramBreaksTheLine(t *testing.T) {
	testenv.OwnHome(t, "node", "python")
	if err := flag.Set("rapid.checks", "15"); err != nil { // each is a whole run
		t.Fatal(err)
	}
	airlock := filepath.Join(testenv.RepoRoot(t), "bin", "airlock")
	const limit, slack = 2 * time.Second, time.Minute // a loaded machine may take long to start and to clean up
	for language := range fragments {
		t.Run(language, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				cmd := exec.Command(airlock, "run", "--lang", language, "--timeout", limit.String(), "-")
				cmd.Stdin = bytes.NewReader(program(rt, language))
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				started := time.Now()
				err := cmd.Run()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					rt.Fatal(err)
				}
				line := stdout.Bytes()
				if len(line) > 64<<10 || bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) {
					rt.Fatalf("stdout has %d bytes: %.300q", len(line), line)
				}
				if stderr.Len() > 257<<10 {
					rt.Fatalf("stderr has %d bytes", stderr.Len())
				}
				if took := time.Since(started); took > limit+slack {
					rt.Fatalf("it took %v", took)
				}
			})
		})
	}
}
