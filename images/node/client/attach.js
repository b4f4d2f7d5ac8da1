// Hands files to the caller: images and sounds that a model is shown, and any other file.
//
//     await client.attach(pngBuffer, "image/png", "chart.png");
//     await client.attach("/tmp/report.csv");
//
// It takes bytes, a path, a data URI, a content block of a tool, or text and JSON to
// write into a file, and returns a promise of what is known about the file. The data
// are read before it returns.

import { encode } from "./encode.js";
import { errorOf, ToolError, ToolResult } from "./result.js";
import { request } from "./transport.js";

const { readFileSync, statSync } = process.getBuiltinModule("node:fs");
const { fileURLToPath } = process.getBuiltinModule("node:url");

const MAX_FRAME = 16 << 20; // bytes
const MOST = Math.floor((MAX_FRAME - (64 << 10)) / 4) * 3; // bytes that fit one frame, encoded
const LONGEST_PATH = 4096;

// What each argument may be called, without capitals and separators.
const DATA = ["data", "bytes", "content", "contents", "body", "buffer", "blob", "file", "path", "filepath", "source", "image", "audio", "text"];
const MIME = ["mime", "mimetype", "contenttype", "mediatype", "type", "format"];
const NAME = ["name", "filename", "title", "label"];

const MEDIA_TYPE = /^(?:application|audio|font|image|message|model|multipart|text|video)\/[^\s;]+(?:;.*)?$/;
const FORMATS = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  svg: "image/svg+xml",
  wav: "audio/wav",
  mp3: "audio/mpeg",
  csv: "text/csv",
  json: "application/json",
  pdf: "application/pdf",
  txt: "text/plain",
  text: "text/plain",
  html: "text/html",
  md: "text/markdown",
  markdown: "text/markdown",
};
const MAGIC = ["\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF", "%PDF", "PK\x03\x04", "ID3", "OggS", "fLaC"];

/**
 * Hands a file to the caller. The arguments are identified by their types, so
 * their order does not matter; one object with `data` (or `path`), `mime` and `name`
 * works too. Of content blocks, or a tool's result that has several, each is attached,
 * and the promise is of an array. Rejects with a ToolError (type "OutputLimit") for
 * files over the limits of size and number.
 */
export async function attach(...given) {
  const { data, mime, name } = arranged(given);
  const blocks = blocksOf(data);
  if (blocks) {
    const all = blocks.map((block) => sendBlock(block, mime, name));
    return all.length === 1 ? all[0] : Promise.all(all);
  }
  const file = await read(data, mime);
  return send(file.content, mime ?? file.mime, name ?? file.name);
}

/** Returns data, mime and name of a call that gives them in any order, under any usual name. */
function arranged(given) {
  const call = {};
  for (const value of given) {
    if (value === undefined || value === null) continue;
    if (isOptions(value, call)) Object.assign(call, optionsOf(value, call));
    else if (typeof value !== "string" && call.data === undefined) call.data = value;
    else if (typeof value !== "string") {
      if (typeof call.data !== "string" || call.name !== undefined) throw new TypeError("attach got two things to attach: attach one at a time");
      [call.name, call.data] = [call.data, value]; // the name came first
    } else if (call.data !== undefined && call.mime === undefined && mimeOf(value)) call.mime = mimeOf(value);
    else if (call.data === undefined) call.data = value;
    else if (call.name === undefined) call.name = value;
    else throw new TypeError("attach takes data (bytes or a path), mime, name; it got more");
  }
  if (call.mime === undefined && mimeOf(call.name) && call.name.includes("/")) [call.mime, call.name] = [mimeOf(call.name), undefined];
  if (call.data === undefined) throw new TypeError('attach needs bytes or a path, as in client.attach(pngBuffer, "image/png", "chart.png")');
  return call;
}

/** Reports whether an argument is an object of options, not something to attach. */
function isOptions(value, call) {
  if (typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype || isBlock(value) || isBufferJSON(value)) return false;
  const keys = Object.keys(value);
  const known = call.data === undefined ? [...DATA, ...MIME, ...NAME] : [...MIME, ...NAME];
  const isWhole = call.data !== undefined || keys.some((key) => DATA.includes(plain(key)));
  return keys.length > 0 && isWhole && keys.every((key) => known.includes(plain(key)));
}

function optionsOf(options) {
  const call = {};
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    if (DATA.includes(plain(key))) call.data = value;
    else if (NAME.includes(plain(key))) call.name = String(value);
    else call.mime = mimeOf(value) ?? String(value);
  }
  return call;
}

function plain(key) {
  return key.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** Returns the media type that a text is, be it short ("png"); else undefined. */
function mimeOf(value) {
  if (typeof value !== "string") return undefined;
  const text = value.trim().toLowerCase();
  return FORMATS[text.replace(/^\./, "")] ?? (MEDIA_TYPE.test(text) ? text : undefined);
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
  if (block?.type === "resource") return typeof block.resource?.blob === "string" || typeof block.resource?.text === "string";
  return (block?.type === "image" || block?.type === "audio") && typeof block.data === "string";
}

/** Reports whether a value is what JSON makes of a Buffer. */
function isBufferJSON(value) {
  return value?.type === "Buffer" && Array.isArray(value.data);
}

function sendBlock(block, mime, name) {
  const holder = block.resource ?? block;
  const encoded = holder.blob ?? holder.data;
  const content = encoded === undefined ? Buffer.from(holder.text) : Buffer.from(encoded, "base64");
  return send(content, mime ?? holder.mimeType, name ?? (typeof holder.uri === "string" ? holder.uri.split("/").pop() : undefined));
}

/** Returns the bytes of `data`, and its type and name if it has them. */
function read(data, mime) {
  if (data instanceof ToolResult) data = data.data;
  if (typeof data === "string") return readText(data, mime);
  if (data instanceof URL) return data.protocol === "data:" ? readText(data.href, mime) : readFile(fileURLToPath(data));
  if (ArrayBuffer.isView(data)) return { content: Buffer.from(data.buffer, data.byteOffset, data.byteLength) };
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return { content: Buffer.from(data) };
  if (data instanceof Blob) {
    const name = typeof data.name === "string" ? data.name : undefined;
    return data.arrayBuffer().then((content) => ({ content: Buffer.from(content), mime: data.type || undefined, name }));
  }
  if (isBufferJSON(data)) return { content: Buffer.from(data.data) };
  return { content: Buffer.from(encode(data, "data")), mime: "application/json", name: "data.json" };
}

function readFile(path) {
  const status = statSync(path);
  const { size } = status;
  if (!status.isFile()) throw Object.assign(new Error(`${path} is not a regular file, so it cannot be attached`), { code: "EINVAL" });
  if (size > MOST) throw tooLarge(size);
  return { content: readFileSync(path), name: path };
}

/** Reads a text as what it is: a data URI, a path, base64 of a known format, or the content itself. */
function readText(text, mime) {
  const uri = /^data:([^;,]*)([^,]*),/.exec(text);
  if (uri) {
    const rest = text.slice(uri[0].length);
    const content = uri[2].endsWith(";base64") ? Buffer.from(rest, "base64") : Buffer.from(decodeURIComponent(rest));
    return { content, mime: uri[1] || "text/plain" };
  }
  const path = text.startsWith("file://") ? fileURLToPath(text) : text;
  if (path.length > 0 && path.length < LONGEST_PATH && !/[\n\0]/.test(path)) {
    try {
      return readFile(path);
    } catch (problem) {
      const isMissing = problem.code === "ENOENT" || problem.code === "ENOTDIR";
      if (problem.code !== "ENAMETOOLONG" && (!isMissing || looksLikePath(path))) throw problem;
    }
  }
  if (text.length > 32 && !/^text\/|json|xml/.test(mime ?? "")) {
    const begin = Buffer.from(text.slice(0, 64), "base64").latin1Slice();
    if (MAGIC.some((magic) => begin.startsWith(magic))) return { content: Buffer.from(text, "base64") };
  }
  return { content: Buffer.from(text) };
}

/** Reports whether a text that names no file was probably meant to name one. */
function looksLikePath(text) {
  return !/^[<{[]/.test(text) && (/^(?:\/|\.\.?\/|~\/)/.test(text) || /[^/]\.[A-Za-z0-9]{1,5}$/.test(text));
}

function tooLarge(size) {
  return new ToolError("OutputLimit", `the file has ${size} bytes, and one may have ${MOST}: make it smaller, or attach a part of it`, { source: "code" });
}

async function send(content, mime, name) {
  if (content.length > MOST) throw tooLarge(content.length);
  const params = `{"name":${encode(name ?? "", "name")},"mime":${encode(mime ?? "", "mime")},"data":"${content.toString("base64")}"}`;
  const { error, ...file } = await request("run/attach", params);
  if (error) throw errorOf(error);
  return file;
}
