package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/contract"
)

// fragments are lines that each leave something behind for the guest to cope
// with. A program is any sequence of them.
var fragments = map[string][]string{
	"python": {
		"result = {'a': [1, 2.5, None, 'ä']}", "result = {1, 2}", "result = float('inf')",
		"result = [result] if 'result' in globals() else result",
		"result = '\\ud800' * 1000", "result = 'x' * 100_000", "result = b'\\xff'", "result = lambda: 1",
		"import sys; sys.stdout = None", "import sys; sys.stderr.close()",
		"import os; os.write(1, bytes(range(256)) * 100)",
		"import os; os.close(1)", "import os; os.closerange(3, 64)", "import os; os.fork()", "import os; os._exit(7)",
		"import builtins; builtins.len = None", "import builtins; builtins.__import__ = None",
		"import json; json.dumps = None",
		"import sys; sys.setrecursionlimit(30)", "import sys; sys.modules.clear()",
		"import sys; sys.settrace(lambda *a: 1 / 0)",
		"import sys; sys.exit('bye')", "import sys; sys.exit(-1)", "import sys; sys.excepthook = None",
		"raise KeyError('\\udcff' * 10_000)",
		"raise type('E' * 500, (BaseException,), {'__str__': lambda self: 1})()",
		"raise ExceptionGroup('g', [ValueError(i) for i in range(50)])",
		"import signal; signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001); signal.signal(signal.SIGALRM, lambda *a: " +
			"1 / 0)",
		"import threading; threading.Thread(target=lambda: 1 / 0).start()",
		"import atexit; atexit.register(lambda: 1 / 0)",
		"import gc; gc.set_threshold(1)", "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
		"import asyncio; asyncio.run(asyncio.sleep(0))", "import asyncio; asyncio.sleep(0)", "async def f(): pass\nf()",
		"from servers import demo; demo.echo({})",
		"import asyncio; from servers import demo; print(asyncio.run(demo.echo({'n': 1})))",
		"def f(): return f()\nf()", "((((((((((((((((((((((((((((((", "\x00", "\ufeff\t#", "exec('1' + '+1' * 50_000)",
		"del __builtins__", "globals().clear()",
		"import sys; sys.meta_path.clear()", "import sys; sys.path[:] = [1, None]",
		"import warnings; warnings.simplefilter('error')",
	},
	"node": {
		"globalThis.result = { a: [1, 2.5, null, 'ä'] };", "result = new Set([1]);", "result = 1 / 0;",
		"result = [globalThis.result];",
		"result = '\\ud800'.repeat(1000);", "result = 'x'.repeat(100_000);", "result = () => 1;",
		"result = new Promise(() => {});",
		"result = Promise.reject(1);", "result = new Proxy({}, { ownKeys() { throw 1 } });",
		"result = { toJSON() { return this; } };",
		"delete globalThis.result;", "Object.freeze(globalThis.process);",
		"Object.defineProperty(globalThis, 'result', { get() { throw 2 } });",
		"process.stdout.write(Buffer.from([255, 0, 27, 10]));", "process.stdout.destroy();",
		"(await import('node:fs')).closeSync(1);",
		"JSON.parse = JSON.stringify = null;", "Array.prototype.push = Array.prototype.join = null;",
		"Object.prototype.id = 1;",
		"String.prototype.replace = String.prototype.split = () => 1;", "Buffer.from = Buffer.concat = null;",
		"globalThis.Promise = null;",
		"process.exit = process.reallyExit = () => {};", "process.emit = null;", "process.removeAllListeners();",
		"process.exitCode = 9;",
		"process.exit(-1);", "process.reallyExit(7);", "process.on('exit', () => { throw 3 });",
		"setTimeout(() => { throw 4 }, 1);",
		"Promise.reject(Object.create(null));", "throw null;", "throw Object.create(null);",
		"throw new Proxy(new Error(), { get() { throw 5 } });",
		"throw new Error('\\udcff'.repeat(10_000));", "throw new AggregateError([1, new Error('x')], 'many');",
		"Error.stackTraceLimit = 0;",
		"Error.prepareStackTrace = () => 6;", "await new Promise(() => {});", "const f = () => f(); f();", "((((", "`",
		"\x00", "\ufeff//",
		"import { echo } from './servers/demo/index.js'; echo({});",
		"import { nothing } from './servers/demo/index.js';", "import './none.js';",
		"for (const k of Object.getOwnPropertyNames(globalThis)) if (k !== 'process') delete globalThis[k];",
		"process.chdir('/');",
	},
}

// FuzzPrograms runs programs composed of fragments. In every case the guest follows the
// socket's protocol, ends, and delivers a result within the limits.
func FuzzPrograms(f *testing.F) {
	for language, parts := range fragments {
		for i := range parts {
			f.Add(language == "node", []byte{byte(i)})
			if i%4 == 0 {
				f.Add(language == "node", []byte{byte(i), byte(i*7 + 3), byte(i*13 + 5), byte(i*29 + 11)})
			}
		}
	}
	f.Fuzz(func(t *testing.T, node bool, choice []byte) {
		language := "python"
		if node {
			language = "node"
		}
		var code strings.Builder
		for _, part := range choice[:min(len(choice), 8)] {
			code.WriteString(fragments[language][int(part)%len(fragments[language])] + "\n")
		}
		checkDelivery(t, runGuest(t, language, code.String(), len(choice)%2 == 0), code.String())
	})
}

func checkDelivery(t *testing.T, got outcome, code string) {
	t.Helper()
	var envelope struct {
		Result struct {
			OK    bool            `json:"ok"`
			Data  json.RawMessage `json:"data"`
			Error *failure        `json:"error"`
		} `json:"result"`
	}
	if err := json.Unmarshal(got.line, &envelope); err != nil {
		t.Fatalf("got %q, want JSON\ncode:\n%s", got.line, code)
	}
	result := envelope.Result
	switch {
	case result.OK && len(result.Data) == 0:
		t.Errorf("got ok without data\ncode:\n%s", code)
	case !result.OK && (result.Error == nil || result.Error.Type == "" || result.Error.Source == ""):
		t.Errorf("got %s, want an error with type and source\ncode:\n%s", got.line, code)
	case !result.OK && (len(result.Error.Message) > 4<<10 || len(result.Error.Traceback) > 8<<10):
		t.Errorf("got a message of %d bytes and a traceback of %d, want at most 4096 and 8192\ncode:\n%s",
			len(result.Error.Message), len(result.Error.Traceback), code)
	}
}

// FuzzParse feeds the reader of case files.
func FuzzParse(f *testing.F) {
	f.Add([]byte("About.\n-- code --\nx\n-- want.yaml --\nok: true\n"))
	f.Add([]byte("About.\n-- code --\nx\n-- want.yaml --\nok: false\nerror: {type: E, message: [m]}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := contract.Parse("python/000-fuzzed", raw)
		if err == nil && c.Want.OK == (c.Want.Error != nil) {
			t.Errorf("got a case that contradicts itself: %+v", c.Want)
		}
	})
}
