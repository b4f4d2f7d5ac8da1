// Where the code is kept. It is written to /workspace and imported from there,
// because then import.meta, relative imports, workers and Node's own messages are
// the usual ones. Tried and wrong: a sourceURL comment to name it
// <agent_code>; Node resolves specifiers against that name to explain an import
// that fails, and loses the explanation. Tracebacks are renamed instead.

/** The file that holds the code. */
export const FILE = "/workspace/agent_code.mjs";
