// A host with MCP Apps in a page: it calls the tool that its address names through an MCP server at /mcp, and shows the
// tool's app with the renderer of MCP-UI, which desktop hosts use. The page of the sandbox, at another origin, gets the
// content security policy that the server has declared.
//
//   /?tool=NAME&sandbox=ORIGIN
import { AppRenderer } from "@mcp-ui/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const say = (text) => document.getElementById("log").append(text + "\n");
addEventListener("unhandledrejection", (event) => say("error: " + event.reason.message));
addEventListener("error", (event) => say("error: " + event.message));

const declared = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } };
const client = new Client({ name: "apps-host", version: "1" }, { capabilities: declared });
await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));

const { tools } = await client.listTools();
const forModel = tools.filter((tool) => tool._meta?.ui?.visibility?.includes("model") ?? true);
say("for the model: " + forModel.map((tool) => tool.name).join(" "));
const tool = tools.find((one) => one.name === query.get("tool"));
const uri = tool._meta.ui.resourceUri;
const { contents } = await client.readResource({ uri });
const ui = contents[0]._meta?.ui ?? {};
say("declared: " + JSON.stringify(ui));

const patience = { timeout: 120_000 }; // a person answers
const toolResult = await client.callTool({ name: tool.name, arguments: {} }, undefined, patience);
say("result: " + JSON.stringify(toolResult.content));

// onCallTool does what hosts have to do (MCP Apps, Visibility), and forwards the call.
const onCallTool = async (params) => {
  const called = tools.find((one) => one.name === params.name);
  if (!(called?._meta?.ui?.visibility?.includes("app") ?? true)) {
    throw new Error(`${params.name} is not for apps`);
  }
  return client.callTool(params, undefined, patience);
};

createRoot(document.getElementById("app")).render(
  createElement(AppRenderer, { // without the client, which would get each call of the app at once
    toolName: tool.name,
    toolResourceUri: uri,
    html: contents[0].text,
    sandbox: { url: new URL("/sandbox", query.get("sandbox")), csp: ui.csp },
    toolInput: {},
    toolResult,
    onCallTool,
    onError: (error) => say("error: " + error.message),
  }),
);
