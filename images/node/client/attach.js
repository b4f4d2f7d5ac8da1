// Hands files to the caller: images and sounds that a model is shown, and any other file.
//
//     await client.attach(pngBuffer, "image/png", "chart.png");
//     await client.attach("/tmp/report.csv");
//
// It takes bytes, a path, a content block of a tool, or text and JSON to write into a
// file, and returns a promise of what is known about the file. The data are read before
// it returns.

import { encode } from "./encode.js";
import { errorOf, ToolError, ToolResult } from "./result.js";
import { request } from "./transport.js";

const { readFileSync, statSync } = process.getBuiltinModule("node:fs");
const { fileURLToPath } = process.getBuiltinModule("node:url");

const MAX_FRAME = 16 << 20; // bytes
const MOST = Math.floor((MAX_FRAME - (64 << 10)) / 4) * 3; // bytes that fit one frame, encoded
const LONGEST_PATH = 4096;

const USAGE =
  'write client.attach(data, mime, name), as in client.attach(pngBuffer, "image/png", "chart.png"); data is bytes, ' +
  "a path, a Blob or text; mime and name may be undefined or left out";

/**
 * Hands a file to the caller. Of content blocks, or a tool's result that has several,
 * each is attached, and the promise is of an array. Rejects with a TypeError for other
 * arguments than data, mime and name, and with a ToolError (type "OutputLimit") for files
 * over the limits of size and number.
 */
export async function attach(data, mime, name, ...more) {
  check(data, mime ?? undefined, name ?? undefined, more);
  const blocks = blocksOf(data);
  if (blocks) {
    const all = blocks.map((block) => sendBlock(block, mime, name));
    return all.length === 1 ? all[0] : Promise.all(all);
  }
  const file = await read(data, mime);
  return send(file.content, mime ?? file.mime, name ?? file.name);
}

function check(data, mime, name, more) {
  if (data === undefined || data === null) throw new TypeError(`attach got no data: ${USAGE}`);
  if (more.length) throw new TypeError(`attach got too many arguments: ${USAGE}`);
  if (mime !== undefined && !(typeof mime === "string" && mime.includes("/"))) {
    throw new TypeError(`attach needs a type such as "image/png" as its second argument: ${USAGE}`);
  }
  if (name !== undefined && typeof name !== "string") throw new TypeError(`attach needs a text as the name: ${USAGE}`);
}

/** Returns the content blocks that hold files in a tool's result or in an array; undefined for anything else. */
function blocksOf(data) {
  if (data instanceof ToolResult) {
    const found = (data.content ?? []).filter(isBlock);
    return found.length ? found : undefined;
  }
  if (isBlock(data)) return [data];
  return Array.isArray(data) && data.length && data.every(isBlock) ? data : undefined;
}

function isBlock(block) {
  if (block?.type === "resource") {
    return typeof block.resource?.blob === "string" || typeof block.resource?.text === "string";
  }
  return (block?.type === "image" || block?.type === "audio") && typeof block.data === "string";
}

function sendBlock(block, mime, name) {
  const holder = block.resource ?? block;
  const encoded = holder.blob ?? holder.data;
  const content = encoded === undefined ? Buffer.from(holder.text) : Buffer.from(encoded, "base64");
  const last = typeof holder.uri === "string" ? holder.uri.split("/").pop() : undefined;
  return send(content, mime ?? holder.mimeType, name ?? last);
}

/** Returns the bytes of `data`, and its type and name if it has them. */
function read(data, mime) {
  if (data instanceof ToolResult) data = data.data;
  if (typeof data === "string") return readText(data, mime);
  if (data instanceof URL) return readFile(fileURLToPath(data));
  if (ArrayBuffer.isView(data)) return { content: Buffer.from(data.buffer, data.byteOffset, data.byteLength) };
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return { content: Buffer.from(data) };
  if (data instanceof Blob) {
    const name = typeof data.name === "string" ? data.name : undefined;
    return data
      .arrayBuffer()
      .then((content) => ({ content: Buffer.from(content), mime: data.type || undefined, name }));
  }
  return { content: Buffer.from(encode(data, "data")), mime: "application/json", name: "data.json" };
}

function readFile(path) {
  const status = statSync(path);
  const { size } = status;
  if (!status.isFile()) {
    throw Object.assign(new Error(`${path} is not a regular file, so it cannot be attached`), { code: "EINVAL" });
  }
  if (size > MOST) throw tooLarge(size);
  return { content: readFileSync(path), name: path };
}

/** Reads the file that a text names, or returns the text as the content. */
function readText(text, mime) {
  const path = text.startsWith("file://") ? fileURLToPath(text) : text;
  if (path.length > 0 && path.length < LONGEST_PATH && !/[\n\0]/.test(path)) {
    try {
      return readFile(path);
    } catch (problem) {
      const isMissing = problem.code === "ENOENT" || problem.code === "ENOTDIR";
      if (problem.code !== "ENAMETOOLONG" && (!isMissing || looksLikePath(path))) throw problem;
    }
  }
  if (text.startsWith("data:") || (/^(?:image|audio)\//.test(mime ?? "") && !mime.includes("svg"))) {
    throw new TypeError(
      `attach got a text where bytes are needed; decode it with Buffer.from(text, "base64"): ${USAGE}`,
    );
  }
  return { content: Buffer.from(text) };
}

/** Reports whether a text that names no file was probably meant to name one. */
function looksLikePath(text) {
  return !/^[<{[]/.test(text) && (/^(?:\/|\.\.?\/|~\/)/.test(text) || /[^/]\.[A-Za-z0-9]{1,5}$/.test(text));
}

function tooLarge(size) {
  const message = `the file has ${size} bytes, and one may have ${MOST}: make it smaller, or attach a part of it`;
  return new ToolError("OutputLimit", message, { source: "code" });
}

async function send(content, mime, name) {
  if (content.length > MOST) throw tooLarge(content.length);
  const names = `"name":${encode(name ?? "", "name")},"mime":${encode(mime ?? "", "mime")}`;
  const params = `{${names},"data":"${content.toString("base64")}"}`;
  const { error, ...file } = await request("run/attach", params);
  if (error) throw errorOf(error);
  return file;
}
