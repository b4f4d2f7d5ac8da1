// Functions of Node that write held output before they do what they do: those that end
// the process, let another one print, print past the streams, or may block for long. No
// interruption reaches code that waits in one of the last.

const ENDS = ["abort", "kill"];
const CHILDREN = ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"];
const FILES = [
  "write", "writev", "appendFileSync", "copyFileSync", "cpSync", "openSync", "readFileSync", "readSync", "readvSync",
  "writeFileSync", "writeSync", "writevSync",
];

// What else may block for long, of modules that few programs load: how to find it in one.
const LATER = {
  "NativeModule crypto": () => synchronous("crypto"),
  "NativeModule zlib": () => synchronous("zlib"),
  "NativeModule sqlite": () => {
    const { DatabaseSync, StatementSync } = getBuiltinModule("node:sqlite");
    return [
      [DatabaseSync.prototype, ["exec"]],
      [StatementSync.prototype, ["all", "get", "run"]],
    ];
  },
};

const { getBuiltinModule, moduleLoadList } = process; // the code may change them
let loaded = 0; // modules when it was last looked for new ones

/**
 * Makes the functions of the modules that are always there call `first` before they begin, but the one that ends the
 * process without hooks `atEnd`.
 */
export function callBefore(first, atEnd) {
  wrap(atEnd, process, ["reallyExit"]);
  wrap(first, process, ENDS);
  wrap(first, getBuiltinModule("node:fs"), FILES);
  wrap(first, getBuiltinModule("node:child_process"), CHILDREN);
  getBuiltinModule("node:module").syncBuiltinESMExports();
}

/** Does the same with those of the modules that were loaded since it was last called. */
export function callBeforeNew(first) {
  if (moduleLoadList.length === loaded) return;
  const added = moduleLoadList.slice(loaded);
  loaded = moduleLoadList.length;
  const found = Object.keys(LATER).filter((name) => added.includes(name));
  for (const name of found) {
    for (const [object, names] of LATER[name]()) wrap(first, object, names);
  }
  if (found.length) getBuiltinModule("node:module").syncBuiltinESMExports();
}

function synchronous(name) {
  const module = getBuiltinModule(name);
  return [[module, Object.keys(module).filter((key) => key.endsWith("Sync"))]];
}

function wrap(first, object, names) {
  for (const name of names) {
    const original = object[name];
    object[name] = Object.defineProperties(function (...args) {
      first();
      return original.apply(this, args);
    }, Object.getOwnPropertyDescriptors(original));
  }
}
