package main

import "fmt"

// tracedProgram makes a batch of calls, one after the other, and returns for each when it came by, in
// nanoseconds of CLOCK_REALTIME. It notes the time in the place of functions that the client uses.
func tracedProgram(lang language, server string) string {
	if lang.id == "node" {
		return fmt.Sprintf(tracedNode, batchHeads+batch, server, batchHeads)
	}
	return fmt.Sprintf(tracedPython, batchHeads+batch, server, batchHeads)
}

const tracedPython = `from asyncio import get_running_loop
from time import time_ns
from client import transport
from client.connection import Connection
from client.mcp_client import call_tool

marks = []


def marking(inner):
    def outer(*given):
        marks.append(time_ns())
        return inner(*given)

    return outer


Connection._write, Connection._take = marking(Connection._write), marking(Connection._take)
if transport._pool._home is not None:
    transport._pool._home.bind(get_running_loop())
noted = []
for n in range(%d):
    marks[:] = [time_ns()]
    answer = await call_tool(server_id=%q, name="echo", arguments={"message": f"message {n}"})
    marks.append(time_ns())
    assert answer["ok"], answer
    noted.append(marks[:])
result = noted[%d:]
`

// Node has CLOCK_REALTIME in milliseconds only, so the moment at which these change is looked for.
const tracedNode = `import { callTool } from "./client/mcp_client.js";
import { Socket } from "node:net";
const now = process.hrtime.bigint;
let ahead, least;
for (let n = 0; n < 20; n++) {
  const old = Date.now();
  let before, real, after;
  do {
    before = now();
    real = Date.now();
    after = now();
  } while (real === old);
  if (least === undefined || after - before < least) {
    least = after - before;
    ahead = BigInt(real) * 1000000n - before - least / 2n;
  }
}
let marks = [];
const { write } = Socket.prototype;
Socket.prototype.write = function (...given) {
  marks.push(now());
  return write.apply(this, given);
};
const { subarray } = Buffer.prototype;
Buffer.prototype.subarray = function (...given) {
  if (marks.length === 2) marks.push(now());
  return subarray.apply(this, given);
};
const noted = [];
for (let n = 0; n < %d; n++) {
  marks = [now()];
  const answer = await callTool({ serverId: %q, name: "echo", arguments: { message: "message " + n } });
  marks.push(now());
  if (!answer.ok) throw new Error(answer.error.message);
  noted.push(marks.map((at) => at + ahead));
}
globalThis.result = noted.slice(%d);
`
