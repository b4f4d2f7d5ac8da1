// Copies /workspace/session in before the code runs, and what changed there out
// after it. The host keeps paths and bytes. Only regular files are kept,
// and nothing if there is more than the session may hold.

const { closeSync, constants, lstatSync, mkdirSync, openSync, readdirSync, readSync, rmSync, writeSync } =
  process.getBuiltinModule("node:fs");

const DIRECTORY = "/workspace/session";
const RESULT = "large-result.json";
const PIECE = 1 << 20; // bytes of one piece
const BATCH = 4 << 20; // bytes of one request
const BATCH_FILES = 400;
const MAX_DEPTH = 32;

const { stringify } = JSON;
const { alloc, byteLength, from: toBytes } = Buffer;
const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const BIG = { bigint: true };

/** There is more than the session may hold; the message has the size. */
class TooMuch extends Error {}

/** Makes the directory. Part of getting ready, while no run waits. */
export function prepareSession() {
  mkdirSync(DIRECTORY, { recursive: true, mode: 0o755 });
}

let empty; // the stamp of the directory without files

/** Returns a session without files, for a rehearsal that leaves none. */
export function emptySession() {
  empty = stamp();
  return new SessionFiles(null, { files: 0 });
}

/** The files of one run's session; `granted` is what the host allows. */
export class SessionFiles {
  #link;
  #granted;
  #known = new Map(); // path → state of the file when the code began
  #untouched;

  constructor(link, granted) {
    this.#link = link;
    this.#granted = granted;
    if (granted.files > 0) this.#load();
    this.#untouched = granted.files === 0 && empty ? empty : stamp();
  }

  /** Sends the host the changed files; lists on stderr those that are not kept. */
  save() {
    try {
      if (this.#known.size === 0 && stamp() === this.#untouched) return;
      this.#save();
    } catch (problem) {
      const cause = problem instanceof TooMuch ? problem.message : (problem?.code ?? "it cannot be read");
      tell(`what this run left in /workspace/session was not kept: ${cause}`);
    }
  }

  /** Writes a result, as JSON, to a file of the session; returns its path, or undefined if it does not fit. */
  keepResult(data) {
    const path = `${DIRECTORY}/${RESULT}`;
    const { max_files: mostFiles, max_bytes: mostBytes } = this.#granted;
    try {
      rmSync(path, { force: true }); // of an earlier run
      const { found } = this.#found();
      let size = byteLength(data);
      for (const status of found.values()) size += Number(status.size);
      if (found.size >= mostFiles || size > mostBytes) return undefined;
      const descriptor = openSync(path, O_WRONLY | O_NOFOLLOW | O_CREAT | O_EXCL, 0o644);
      try {
        const bytes = toBytes(data);
        for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
      } finally {
        closeSync(descriptor);
      }
      return path;
    } catch {
      // The disk is full, or the code has left something else there.
      try {
        rmSync(path, { force: true });
      } catch {
        // it is a directory
      }
      return undefined;
    }
  }

  #load() {
    for (let more = true; more; ) {
      const answer = this.#link.request("session/load", "{}");
      more = answer.more;
      for (const piece of answer.files) {
        try {
          this.#write(piece);
        } catch (problem) {
          // Files that were not loaded are unknown, so they do not count as removed.
          this.#known.delete(piece.path);
          rmSync(`${DIRECTORY}/${piece.path}`, { force: true });
          tell(`not all files of /workspace/session could be loaded: ${problem.code}`);
          more = false;
          break;
        }
      }
    }
    for (const path of this.#known.keys()) this.#known.set(path, state(lstatSync(`${DIRECTORY}/${path}`, BIG)));
  }

  #write({ path, data, append }) {
    if (!append && path.includes("/")) {
      mkdirSync(`${DIRECTORY}/${path.slice(0, path.lastIndexOf("/"))}`, { recursive: true, mode: 0o755 });
    }
    const flags = O_WRONLY | O_NOFOLLOW | (append ? O_APPEND : O_CREAT | O_EXCL);
    const descriptor = openSync(`${DIRECTORY}/${path}`, flags, 0o644);
    try {
      const bytes = toBytes(data, "base64");
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    } finally {
      closeSync(descriptor);
    }
    this.#known.set(path, "");
  }

  #save() {
    const { found, skipped } = this.#found();
    const changed = [...found].filter(([path, status]) => this.#known.get(path) !== state(status));
    const removed = [...this.#known.keys()].filter((path) => !found.has(path));
    if (changed.length || removed.length) this.#send(changed, removed);
    if (skipped.length) {
      tell(`not kept in /workspace/session, because only regular files are: ${skipped.slice(0, 5).join(", ")}`);
    }
  }

  /** Returns the regular files as path → status, and the names of all other files. */
  #found() {
    const { max_files: mostFiles, max_bytes: mostBytes } = this.#granted;
    const found = new Map();
    const skipped = [];
    const self = lstatSync(DIRECTORY, { throwIfNoEntry: false });
    if (!self) return { found, skipped };
    if (!self.isDirectory()) return { found, skipped: ["/workspace/session itself"] };
    const waiting = [["", 0]];
    let size = 0;
    while (waiting.length) {
      const [directory, depth] = waiting.pop();
      for (const name of readdirSync(`${DIRECTORY}/${directory}`)) {
        const path = directory + name;
        // A name that is not UTF-8 has no status.
        const status = lstatSync(`${DIRECTORY}/${path}`, { bigint: true, throwIfNoEntry: false });
        if (status?.isDirectory() && depth < MAX_DEPTH - 1) waiting.push([`${path}/`, depth + 1]);
        else if (status?.isFile()) {
          found.set(path, status);
          size += Number(status.size);
        } else skipped.push(stringify(path).slice(0, 80));
        if (found.size > mostFiles || skipped.length + waiting.length > 4 * mostFiles + 64) {
          throw new TooMuch(`more than the ${mostFiles} files that it may hold`);
        }
      }
      if (size > mostBytes) throw new TooMuch(`${size} bytes are more than the ${mostBytes} that it may hold`);
    }
    return { found, skipped };
  }

  #send(changed, removed) {
    let batch = [];
    let size = 0;
    for (const [path, status] of changed) {
      const descriptor = openSync(`${DIRECTORY}/${path}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      try {
        let left = Number(status.size);
        for (let append = ""; left > 0 || !append; append = ',"append":true') {
          const data = alloc(Math.min(left, PIECE));
          const read = left > 0 ? readSync(descriptor, data) : 0;
          batch.push(`{"path":${stringify(path)},"data":"${data.toString("base64", 0, read)}"${append}}`);
          left = read > 0 ? left - read : 0; // it may be shorter by now
          size += read;
          if (size >= BATCH || batch.length >= BATCH_FILES) {
            this.#request(batch, [], false);
            batch = [];
            size = 0;
          }
        }
      } finally {
        closeSync(descriptor);
      }
    }
    this.#request(batch, removed, true);
  }

  #request(batch, removed, last) {
    const params = `{"files":[${batch.join(",")}],"removed":${stringify(removed)},"last":${last}}`;
    const { problem } = this.#link.request("session/save", params);
    if (problem) throw new TooMuch(problem);
  }
}

/** Returns what changes when a file is made in the directory, or removed. */
function stamp() {
  const status = lstatSync(DIRECTORY, { bigint: true, throwIfNoEntry: false });
  return status ? `${status.ino} ${status.mtimeNs} ${status.ctimeNs} ${status.mode}` : "";
}

/** Returns what changes with each change of a file; code cannot set the last of it. */
function state(status) {
  return `${status.ino} ${status.size} ${status.ctimeNs}`;
}

function tell(text) {
  try {
    writeSync(2, `airlock: ${text}\n`);
  } catch {
    // the code has closed its stderr
  }
}
