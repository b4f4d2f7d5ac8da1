// The app of the test's own server: it shows the result of its tool, calls other tools, and fetches from two origins,
// which the server's page names.
import { App } from "@modelcontextprotocol/ext-apps";

const say = (text) => {
  const line = document.createElement("p");
  line.textContent = text;
  document.body.append(line);
};
const app = new App({ name: "notes", version: "1" });
app.ontoolresult = (result) => say("shows " + result.structuredContent.note);
await app.connect();

const attempt = async (what, begin) => {
  try {
    say(`${what}: ${await begin()}`);
  } catch (error) {
    say(`${what}: failed, ${error.message}`);
  }
};
const call = (name, args = {}) => async () => {
  const result = await app.callServerTool({ name, arguments: args });
  return (result.isError ? "refused, " : "") + result.content[0].text;
};
const button = (name, press) => {
  const made = document.createElement("button");
  made.textContent = name;
  made.onclick = () => attempt(name, press);
  document.body.append(made);
};
button("Save", call("save_note", { note: "two litres" }));
button("Erase", call("erase_notes"));
button("Run code", call("run_code", { language: "python", code: "result = 1" }));
for (const [name, address] of Object.entries(globalThis.addresses)) {
  button(name, async () => (await fetch(address)).text());
}
