// A console that costs little.

const { Console } = process.getBuiltinModule("node:console");
const { inspect } = process.getBuiltinModule("node:util");

const LOGGING = { log: 0, info: 0, debug: 0, error: 1, warn: 1 }; // to which stream

/**
 * Lets the console print without what each of its calls costs in Node: telling the
 * inspector, which is not used in here, listening for errors, a turn through the
 * stream, and, where only texts and numbers are printed, through what formats objects.
 * That makes a kilobyte of garbage a line: in a sandbox, where memory that is
 * touched for the first time is dear, it would cost more than all the rest.
 *
 * `printers` print a text, or a line of simple values, to stdout and to stderr. A stream whose `write` the code
 * has replaced gets what is printed.
 */
export function replaceConsole(...printers) {
  const sinks = [process.stdout, process.stderr].map((stream, i) => sink(stream, printers[i]));
  const quick = new Console({ stdout: sinks[0], stderr: sinks[1], colorMode: false, ignoreErrors: false });
  let groups = 0;
  for (const [name, step] of Object.entries({ group: 1, groupCollapsed: 1, groupEnd: -1 })) {
    const original = quick[name];
    quick[name] = named(name, (...values) => {
      groups = Math.max(0, groups + step);
      original(...values);
    });
  }
  for (const [name, stream] of Object.entries(LOGGING)) {
    const original = quick[name];
    const { write, printLine } = sinks[stream];
    quick[name] = named(name, (...values) => {
      if (groups === 0 && printLine(values)) return;
      const line = groups === 0 ? plainLine(values) : "";
      if (line) write(line);
      else original(...values);
    });
  }
  for (const name of Object.keys(quick)) {
    if (typeof quick[name] === "function" && typeof console[name] === "function" && name !== "Console") {
      console[name] = quick[name];
    }
  }
}

/** Returns a writer for a stream; it uses the stream itself only if the code has changed it. */
function sink(stream, printer) {
  const { write } = stream;
  const ignore = () => {};
  const isUntouched = () =>
    stream.write === write && !stream.writableLength && !stream.writableCorked && stream.writable;
  return {
    write(text) {
      if (isUntouched()) {
        try {
          printer.print(text);
        } catch {
          // The code may have closed the descriptor.
        }
        return;
      }
      stream.once("error", ignore);
      stream.write(text, ignore);
      stream.removeListener("error", ignore);
    },
    /** Prints a line, or reports that it has to be made and written. */
    printLine(values) {
      try {
        return isUntouched() && printer.printLine(values);
      } catch {
        return true; // the code may have closed the descriptor
      }
    },
  };
}

/** Returns the line that Node prints for values that are texts and numbers, or "" for other values. */
function plainLine(values) {
  let line = "";
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) line += " ";
    if (typeof value === "string") {
      if (i === 0 && values.length > 1 && value.includes("%")) return "";
      line += value;
    } else if (typeof value === "number") {
      if (Object.is(value, -0) || inspect.defaultOptions.numericSeparator) return "";
      line += value;
    } else if (typeof value === "boolean") line += value;
    else return "";
  }
  return line + "\n";
}

function named(name, method) {
  return Object.defineProperty(method, "name", { value: name });
}
