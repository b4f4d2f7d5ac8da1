// A client made with one of the two TypeScript SDKs that signs in at a server's request.
// Its argument says how; while it connects it prints {"authorize": URL} for a person to
// open, and reads the address that the browser was sent to at the end; then it prints
// the names of the tools.
import { createInterface } from "node:readline";

const { sdk, era, url, client: id, redirect, tokens } = JSON.parse(process.argv[2]);

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const kept = { tokens };
const provider = {
	redirectUrl: redirect,
	clientMetadata: { redirect_uris: [redirect], token_endpoint_auth_method: "none", client_name: "test" },
	state: () => crypto.randomUUID(),
	clientInformation: () => ({ client_id: id }),
	tokens: () => kept.tokens,
	saveTokens: (given) => {
		kept.tokens = given;
	},
	redirectToAuthorization: (address) => {
		kept.address = address;
	},
	saveCodeVerifier: (verifier) => {
		kept.verifier = verifier;
	},
	codeVerifier: () => kept.verifier,
};

const make = {
	async typescript1() {
		const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
		const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
		const { UnauthorizedError } = await import("@modelcontextprotocol/sdk/client/auth.js");
		return {
			client: new Client({ name: sdk, version: "1" }),
			transport: new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }),
			finish: (transport, address) => transport.finishAuth(address.searchParams.get("code")),
			isUnauthorized: (error) => error instanceof UnauthorizedError,
		};
	},
	async typescript2() {
		const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
			await import("@modelcontextprotocol/client");
		return {
			client: new Client(
				{ name: sdk, version: "1" },
				{ versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } },
			),
			transport: new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }),
			finish: (transport, address) => transport.finishAuth(address.searchParams),
			isUnauthorized: (error) => error instanceof UnauthorizedError,
		};
	},
};

for (;;) {
	const { client, transport, finish, isUnauthorized } = await make[sdk]();
	try {
		await client.connect(transport);
		say({ tools: (await client.listTools()).tools.map((tool) => tool.name) });
		await client.close();
		break;
	} catch (error) {
		if (!kept.address || !isUnauthorized(error)) throw error;
	}
	say({ authorize: String(kept.address) });
	kept.address = undefined;
	await finish(transport, new URL((await lines.next()).value));
}
process.exit(0);
