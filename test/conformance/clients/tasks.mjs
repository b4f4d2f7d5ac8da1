// The official client of the Tasks extension, driven by a test: its arguments are the server's URL and a person's
// choice, and its only line of output is what became of a run in the background that asks the person.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const [, , url, code, choice] = process.argv;

const extensions = { "io.modelcontextprotocol/tasks": {} };
const clientInfo = { name: "tasks", version: "1" };
const clientCapabilities = { elicitation: { form: {} }, extensions };
const client = new Client(clientInfo, {
	capabilities: clientCapabilities,
	versionNegotiation: { mode: "auto" },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

// post sends one request. The client of the SDK does not know the results of tasks.
const post = async (request) => {
	const headers = {
		"content-type": "application/json",
		accept: "application/json, text/event-stream",
		"mcp-protocol-version": client.getNegotiatedProtocolVersion(),
		"mcp-method": request.method,
		"mcp-name": request.params.taskId ?? request.params.name,
	};
	const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(request) });
	const body = await response.text();
	const messages = body.startsWith("{") ? [body] : body.split("\n").filter((line) => line.startsWith("data: {"));
	const answer = messages.map((line) => JSON.parse(line.replace("data: ", ""))).find(({ id }) => id === request.id);
	return answer.error ? { kind: "error", error: answer.error } : { kind: "result", result: answer.result };
};

let ids = 0;
const asked = [];
const session = createTaskSessionFromClient(client, {
	endpointId: "airlock",
	rawDispatch: (request) => post({ jsonrpc: "2.0", id: `task-${++ids}`, ...request }),
	v2RequestFraming: { protocolVersion: client.getNegotiatedProtocolVersion(), clientInfo, clientCapabilities },
	onInputRequest: async ({ params }) => {
		asked.push(params.message);
		return { action: "accept", content: { decision: choice } };
	},
});
const execution = await session.callTool("run_code", { language: "python", code, background: true });
const { outcome } = await execution.settle();
console.log(JSON.stringify({ result: resultFromTaskOutcome(outcome), asked }));
await session.close();
await client.close();
