// Runs each program that is posted in a separate isolate, which is made for
// it and used once, and answers with what the program left in globalThis.result.

const main = `
import "./program.js";
export default { fetch() { return Response.json(globalThis.result); } };
`;

export default {
  async fetch(request, env) {
    const worker = env.LOADER.load({
      compatibilityDate: "2026-11-01",
      mainModule: "main.js",
      modules: { "main.js": main, "program.js": await request.text() },
      globalOutbound: null,
    });
    return worker.getEntrypoint().fetch("http://program/");
  },
};
