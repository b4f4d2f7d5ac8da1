package main

import "fmt"

// job is one program and its expected result.
type job struct {
	kind     string
	language string
	code     string
	want     string // the result as JSON; empty if the program must fail
	approve  bool   // the person's answer to its question
}

// jobs returns the job with a number. All kinds come in turn, and no two are alike: what is
// kept of each is a new entry of every cache.
func jobs(n int) job {
	switch n % 10 {
	case 0, 1:
		return job{kind: "calls", language: "python", want: "20",
			code: fmt.Sprintf(`from client.mcp_client import call_tool
result = 0
for n in range(20):
    answer = await call_tool(server_id="desk", name="read", arguments={"text": f"%d-{n}"})
    assert answer["ok"], answer
    result += 1
`, n)}
	case 2, 3:
		return job{kind: "calls", language: "node", want: "20",
			code: fmt.Sprintf(`import { callTool } from "./client/mcp_client.js";
const all = await Promise.all(Array.from({ length: 20 }, (_, n) => callTool({ serverId: "desk", name: "read", arguments: { text: "%d-" + n } })));
globalThis.result = all.filter((answer) => answer.ok).length;
`, n)}
	case 4, 5:
		return job{kind: "files", language: "python", want: "50000", code: fmt.Sprintf(`import os
os.makedirs("session", exist_ok=True)
with open("session/note-%d.txt", "w") as f:
    f.write("x" * 50000)
client.attach("session/note-%d.txt")
result = os.path.getsize("session/note-%d.txt")
`, n%7, n%7, n%7)}
	case 6:
		return changing(n, true)
	case 7:
		return changing(n, false)
	case 8:
		return job{kind: "lines", language: "node", want: `"done"`,
			code: fmt.Sprintf(`for (let n = 0; n < 2000; n++) console.log("line %d", n);
globalThis.result = "done";
`, n)}
	}
	return job{kind: "failure", language: "python", code: fmt.Sprintf("raise ValueError(%d)\n", n)}
}

// changing calls the tool that needs an approval.
func changing(n int, approve bool) job {
	want := "true"
	if !approve {
		want = "false"
	}
	return job{kind: "approval", language: "python", want: want, approve: approve,
		code: fmt.Sprintf(`from client.mcp_client import call_tool
answer = await call_tool(server_id="desk", name="change", arguments={"text": "%d"})
result = answer["ok"]
`, n)}
}
