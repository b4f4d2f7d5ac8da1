// Makes calls, and fetches results that the host has kept as files because they are
// too large for an answer.

import { encode } from "./encode.js";
import { request } from "./transport.js";

const { closeSync, constants, mkdirSync, openSync, rmSync, writeSync } = process.getBuiltinModule("node:fs");
const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants;

/** Sends tools/call and returns the broker's answer; the file that it names has been written then. */
export async function call(params) {
  const answer = await request("tools/call", params);
  const path = answer.error?.file;
  const problem = path && (await fetchFile(path));
  if (problem) {
    delete answer.error.file;
    answer.error.message = `the result is too large for an answer, and could not be written to ${path}: ${problem}`;
  }
  return answer;
}

/** Writes a file; returns undefined, or why that failed. */
async function fetchFile(path) {
  let descriptor;
  let more = true;
  try {
    mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true, mode: 0o755 });
    descriptor = openSync(path, O_WRONLY | O_NOFOLLOW | O_CREAT | O_TRUNC, 0o644);
    while (more) {
      const part = await request("session/result", encode({ file: path }, "file"));
      if (part.problem) return part.problem;
      const bytes = Buffer.from(part.data, "base64");
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
      more = part.more;
    }
  } catch (cause) {
    if (!cause.syscall) throw cause;
    return `${cause.code}; ask the tool for less`;
  } finally {
    if (descriptor !== undefined) {
      closeSync(descriptor);
      if (more) rmSync(path, { force: true });
    }
  }
}
