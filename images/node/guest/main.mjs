// The program that an Airlock sandbox starts to run JavaScript code.
//
//     /usr/bin/node --openssl-config=/opt/airlock/guest/openssl.cnf --inspect-port=0 --inspect-publish-uid=http \
//         /opt/airlock/guest/main.mjs
//
// It gets ready, waits for the host, fetches one program, runs it, and reports how
// it ended:
//
// - life.mjs: the order of things, from the start to the program;
// - link.mjs: the guest's own connection to the host;
// - execute.mjs: runs the code as an ES module and notices how it ends;
// - source.mjs: reads a program as what it means where Node would refuse it;
// - outcome.mjs: converts the end of the code into the report to the host;
// - failure.mjs: describes an error; hints.mjs suggests how to repair the code, and
//   notes.mjs why there is probably no result;
// - session.mjs: the files that the runs of one session share;
// - output.mjs: streams that lose nothing, with held.mjs, interrupt.mjs and before.mjs, and console.mjs;
// - random.mjs and openssl.cnf: random numbers that no two sandboxes share.
//
// The code shares this process. It may break every global and module; it cannot
// affect anything but its own result. Everything that the guest needs after
// the code has run, it holds by references taken before.

const { registerHooks } = process.getBuiltinModule("node:module");

// The guest and the client import each other by path. Node would look at each
// directory above for links and for a package.json: a tenth of the start, in gVisor.
const OURS = /^file:\/\/\/(?:opt\/airlock\/guest|workspace\/client)\/\w+\.m?js$/;
const hooks = registerHooks?.({
  resolve(name, context, next) {
    const url = /^[./]/.test(name) ? new URL(name, context.parentURL).href : name;
    return OURS.test(url) ? { url, format: "module", shortCircuit: true } : next(name, context);
  },
});
const { live } = await import("./life.mjs");
hooks?.deregister(); // the code's imports are Node's alone
await live();
