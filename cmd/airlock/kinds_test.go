package main

import (
	"os"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// kinds are programs that wait for people in different ways, with the number of their calls and their results.
var kinds = []struct {
	name, language, code string
	calls                int
	want                 string
}{
	{"loop", "python", `
from servers.files import create_directory
made = {}
for name in sorted({"c", "a", "b"}):
    made[name] = (await create_directory({"path": f"DIR/{name}"})) is not None
result = made`, 3, `{"a":true,"b":true,"c":true}`},
	{"gather", "python", `
import asyncio, contextvars
from servers.files import create_directory
order = contextvars.ContextVar("order")
async def make(i):
    order.set(i)
    await asyncio.sleep(i / 1000)
    await create_directory({"path": f"DIR/{i}"})
    return order.get()
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(make(i)) for i in range(3)]
result = [t.result() for t in tasks] + await asyncio.gather(make(8), make(9))`, 5, `[0,1,2,8,9]`},
	{"finally", "python", `
from contextlib import asynccontextmanager
from servers.files import create_directory
trace = []
@asynccontextmanager
async def around(name):
    await create_directory({"path": f"DIR/{name}-in"})
    try:
        yield name
    finally:
        await create_directory({"path": f"DIR/{name}-out"})
        trace.append(name)
try:
    async with around("x") as x:
        raise KeyError(x)
except KeyError as e:
    trace.append(e.args[0] + "!")
result = trace`, 2, `["x","x!"]`},
	{"data", "python", `
import array, hashlib, random
from servers.files import create_directory
random.seed(1)
rows = [{"id": i, "name": f"row {i}"} for i in range(100_000)]
block = random.randbytes(50 << 20); digest = hashlib.sha256(block).hexdigest()
numbers = array.array("d", range(100_000))
await create_directory({"path": "DIR/one"})
same = hashlib.sha256(block).hexdigest() == digest
result = [same, sum(r["id"] for r in rows), rows[-1]["name"], int(sum(numbers))]`, 1,
		`[true,4999950000,"row 99999",4999950000]`},
	{"files and threads", "python", `
import queue, sqlite3, tempfile, threading
from servers.files import create_directory
base = sqlite3.connect("/tmp/kept.db")
base.execute("create table t (x)")
base.execute("begin"); base.execute("insert into t values (7)")
spooled = tempfile.TemporaryFile(); spooled.write(b"spooled")
jobs, done = queue.Queue(), queue.Queue()
def work():
    for job in iter(jobs.get, None):
        done.put(job * job)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
with threading.Lock():
    await create_directory({"path": "DIR/one"})
for i in range(9): jobs.put(i)
for t in threads: jobs.put(None)
for t in threads: t.join()
base.commit(); spooled.seek(0)
squares = sorted(done.get() for _ in range(9))
result = [base.execute("select x from t").fetchone()[0], spooled.read().decode(), squares[-1]]`, 1, `[7,"spooled",64]`},
	{"loop", "node", `
import { create_directory } from "/workspace/servers/files/index.js";
async function* names() { for (const name of ["a", "b", "c"]) yield name; }
const made = new Map();
for await (const name of names()) {
  await create_directory({ path: "DIR/" + name });
  made.set(name, made.size);
}
export default Object.fromEntries(made);`, 3, `{"a":0,"b":1,"c":2}`},
	{"Promise.all", "node", `
import { create_directory } from "/workspace/servers/files/index.js";
import { AsyncLocalStorage } from "node:async_hooks";
const order = new AsyncLocalStorage();
const make = (i) => order.run(i, async () => { await create_directory({ path: "DIR/" + i }); return order.getStore(); });
const all = await Promise.all([0, 1, 2].map(make));
const settled = await Promise.allSettled([make(8), Promise.reject(new Error("no")), make(9)]);
export default [...all, ...settled.map((s) => s.value ?? s.reason.message)];`, 5, `[0,1,2,8,"no",9]`},
	{"finally", "node", `
import { create_directory } from "/workspace/servers/files/index.js";
const trace = [];
async function around() {
  try {
    await create_directory({ path: "DIR/in" });
    throw new Error("x");
  } finally {
    await create_directory({ path: "DIR/out" });
    trace.push("out");
  }
}
try { await around(); } catch (e) { trace.push(e.message); }
export default trace;`, 2, `["out","x"]`},
	{"data", "node", `
import { createHash, randomBytes } from "node:crypto";
import { create_directory } from "/workspace/servers/files/index.js";
const block = randomBytes(50 << 20), hash = () => createHash("sha256").update(block).digest("hex"), before = hash();
const rows = Array.from({ length: 100000 }, (_, id) => ({ id, name: "row " + id }));
const weak = new WeakMap(rows.map((row) => [row, row.id]));
await create_directory({ path: "DIR/one" });
export default [hash() === before, rows.reduce((n, r) => n + r.id, 0), rows.at(-1).name, weak.get(rows[7])];`, 1,
		`[true,4999950000,"row 99999",7]`},
	{"files and threads", "node", `
import { once } from "node:events";
import { open } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { create_directory } from "/workspace/servers/files/index.js";
const shared = new Int32Array(new SharedArrayBuffer(4));
const worker = new Worker(
  'const { parentPort, workerData } = require("node:worker_threads");' +
  'parentPort.on("message", (n) => parentPort.postMessage([n * n, Atomics.add(workerData, 0, 1)]));',
  { eval: true, workerData: shared });
worker.postMessage(3);
const [first] = await once(worker, "message");
const kept = await open("/tmp/kept", "w+");
await kept.write("kept");
await create_directory({ path: "DIR/one" });
worker.postMessage(4);
const [second] = await once(worker, "message");
await worker.terminate();
const { buffer, bytesRead } = await kept.read(Buffer.alloc(10), 0, 10, 0);
await kept.close();
export default [first, second, shared[0], buffer.toString("utf8", 0, bytesRead)];`, 1, `[[9,0],[16,1],2,"kept"]`},
}

// Programs of all kinds go on where they were after each kill of the daemon, and each call is made once (issue 29).
func TestProgramsSurviveEachKill(t *testing.T) {
	testenv.Sandbox(t)
	for _, kind := range kinds {
		t.Run(kind.language+"/"+kind.name, func(t *testing.T) {
			d := newDurableFor(t, []string{kind.language}, "20ms")
			d.start()
			run, text := call(t, d.session, "run_code", map[string]any{"language": kind.language, "background": true,
				"code": strings.ReplaceAll(kind.code, "DIR", d.dir)})
			if run.RunID == "" {
				t.Fatal(text)
			}
			for suspended := 0; ; suspended++ {
				d.await("a suspension or the end", func() bool {
					return d.records("run_suspend") > suspended || d.records("run_end") > 0
				})
				if d.records("run_end") > 0 {
					break
				}
				d.kill()
				d.start()
				calls, _ := d.readRun(run.RunID)["Open"].([]any)
				for _, id := range d.asked(len(calls)) {
					d.approve(id)
				}
			}
			got, text := until(t, d.session, run.RunID, func(s runState) bool { return s.State == "done" })
			if !got.OK || string(got.Data) != kind.want {
				t.Errorf("got %+v, %s, want %s", got, text, kind.want)
			}
			entries, err := os.ReadDir(d.dir)
			if err != nil || len(entries) != kind.calls {
				t.Errorf("%d directories were made, %v, want %d", len(entries), err, kind.calls)
			}
			d.ended(1, kind.calls)
			d.awaitNothingStored()
			d.stop()
		})
	}
}
