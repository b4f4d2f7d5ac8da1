// Being interrupted by the host, wherever the code is, in an endless loop too.
//
// Node runs nothing of the guest while code is in a loop, with one exception: at the signal
// SIGUSR1, which asks for its inspector, it interrupts the code and announces that to
// all cluster workers through process.emit. So the host sends that signal when it was asked to
// (docs/socket.md, run/interrupt), and the inspector is closed again before
// anything can connect to it.

const SIGNAL = "SIGUSR1";
const MOST = 1000; // milliseconds for which the host's signal is waited for

const { _debugEnd: closeInspector, listenerCount, on } = process;
const pause = new Int32Array(new SharedArrayBuffer(4));

let link = null; // to the host, once it is there
let listener = null; // the function that is called at an interruption
let asked = false; // the host will interrupt, and has not yet
let used = false; // it was ever asked
let taken = false; // the signal is the code's own

/** Lets `interrupted` be called at an interruption, which the host is asked for over `connection`. */
export function listen(connection, interrupted) {
  link = connection;
  listener = interrupted;
  used = false;
  asked = false;
}

/** Makes sure that the host interrupts soon; reports whether it will. */
export function ask() {
  if (asked) return true;
  if (!link || taken || !closeInspector || listenerCount.call(process, SIGNAL) > 0) return false;
  const before = used;
  used = asked = true; // the interruption can come before tell returns
  try {
    link.tell("run/interrupt", "{}");
  } catch {
    used = before;
    asked = false;
    return false;
  }
  return true;
}

/** Handles an event of the process before its listeners; reports whether it was an interruption, hidden from them. */
export function notice(event, detail) {
  if (event === "newListener" && detail === SIGNAL && !taken) yieldSignal();
  if (event !== "internalMessage" || !used || detail?.cmd !== "NODE_DEBUG_ENABLED") return false;
  closeInspector();
  asked = false;
  try {
    link.settle();
  } catch {
    // The socket is closed; the link opens another one when it is used.
  }
  listener();
  return true;
}

/**
 * Has the signal do nothing any more, if the host is still to send it. Node's own handler would start the inspector
 * while the process ends, and now and then the process aborts then.
 */
export function endInterruptions() {
  if (!asked || taken) return;
  taken = true;
  on.call(process, SIGNAL, () => {});
}

/** Leaves the signal to the code, once the one that the host will send has come. */
function yieldSignal() {
  taken = true;
  const until = performance.now() + MOST;
  while (asked && performance.now() < until) Atomics.wait(pause, 0, 0, 1);
}
