// A client made with one of the two TypeScript SDKs, driven by a test:
// its argument describes the connection, each line of stdin is one command, and each
// line of stdout its result.
import { createInterface } from "node:readline";

const { sdk, era, command, args, env, url } = JSON.parse(process.argv[2]);

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

let answer; // the answer of the person to the current call
let asked = []; // the questions to the person

const elicit = async (request) => {
	asked.push(request.params.message);
	return answer;
};

// connect returns a client and how it calls a tool.
const connect = {
	async typescript1() {
		const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
		const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
		const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
		const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
		const client = new Client({ name: "typescript1", version: "1" }, { capabilities: { elicitation: {} } });
		client.setRequestHandler(ElicitRequestSchema, elicit);
		const transport = url
			? new StreamableHTTPClientTransport(new URL(url))
			: new StdioClientTransport({ command, args, env, stderr: "inherit" });
		let version; // the client tells only its transport
		const hand = transport.setProtocolVersion?.bind(transport);
		transport.setProtocolVersion = (negotiated) => {
			version = negotiated;
			hand?.(negotiated);
		};
		await client.connect(transport);
		return { client, version, call: (params, options) => client.callTool(params, undefined, options) };
	},
	async typescript2() {
		const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
		const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
		const client = new Client(
			{ name: "typescript2", version: "1" },
			{
				capabilities: { elicitation: { form: {} } },
				versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" },
			},
		);
		client.setRequestHandler("elicitation/create", elicit);
		const transport = url
			? new StreamableHTTPClientTransport(new URL(url))
			: new StdioClientTransport({ command, args, env, stderr: "inherit" });
		await client.connect(transport);
		const call = (params, options) => client.callTool(params, options);
		return { client, version: client.getNegotiatedProtocolVersion(), call };
	},
};

const { client, version, call } = await connect[sdk]();
say({ version, server: client.getServerVersion()?.name, instructions: client.getInstructions() });

const act = {
	list: async () => ({ tools: (await client.listTools()).tools }),
	async call({ tool, arguments: given, progress, cancel, answer: said }) {
		answer = said;
		asked = [];
		const heard = [];
		const abort = new AbortController();
		const options = { signal: abort.signal, timeout: 120_000 };
		if (progress || cancel) {
			options.onprogress = (p) => {
				heard.push(p.message ?? "");
				if (cancel) abort.abort("the test has cancelled it");
			};
		}
		try {
			return { result: await call({ name: tool, arguments: given }, options), progress: heard, asked };
		} catch (error) {
			return { error: { code: error.code, message: String(error.message ?? error) }, progress: heard, asked };
		}
	},
};

for await (const line of createInterface({ input: process.stdin })) {
	const step = JSON.parse(line);
	say(await act[step.op](step));
}
await client.close();
