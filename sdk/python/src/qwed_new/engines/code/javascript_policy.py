"""Names, properties and modules that the analyser of JavaScript refuses or watches."""

from __future__ import annotations

import re

# Names that run text, start programs or reach the system, wherever they are read.
NAMES = frozenset(
    "eval Function require execScript importScripts process child_process Deno Bun WebAssembly XMLHttpRequest "
    "WebSocket EventSource fetch __proto__ Worker SharedWorker ServiceWorker Worklet AsyncFunction GeneratorFunction "
    "AsyncGeneratorFunction RTCPeerConnection WebTransport module __filename createRequire ActiveXObject".split()
)
GLOBALS = frozenset("globalThis window global self frames top parent".split())
PROPERTIES = frozenset(
    "constructor __proto__ prototype eval Function exec execSync spawn spawnSync execFile execFileSync fork "
    "mainModule binding dlopen require createRequire Worker SharedWorker importScripts serviceWorker sendBeacon _load "
    "_compile _extensions getBuiltinModule runInThisContext runInNewContext runInContext compileFunction addModule "
    "instantiateStreaming compileStreaming __defineGetter__ __defineSetter__ __lookupGetter__ getPrototypeOf "
    "setPrototypeOf insertAdjacentHTML innerHTML outerHTML writeln prepareStackTrace getThis callee globalEval "
    "getScript createObjectURL srcdoc createContextualFragment setHTMLUnsafe parseHTMLUnsafe AsyncFunction "
    "GeneratorFunction".split()
)
MODULES = frozenset(
    "child_process fs fs/promises net http https http2 dgram dns dns/promises tls cluster worker_threads vm vm2 os "
    "process module inspector inspector/promises repl v8 wasi axios node-fetch got undici request shelljs execa "
    "cross-spawn puppeteer playwright esbuild sandboxjs isolated-vm ssh2 nodemailer ws isomorphic-fetch cross-fetch "
    "superagent needle follow-redirects trace_events diagnostics_channel zx shelljs/global cross-env "
    "child_process_promise bun:ffi fs-extra graceful-fs rimraf chokidar child-process-promise node-pty bun deno "
    "sqlite ejs pug handlebars".split()
)
TIMERS = frozenset({
    "setTimeout", "setInterval", "setImmediate", "queueMicrotask", "requestAnimationFrame", "requestIdleCallback"})
REFUSED = PROPERTIES | NAMES | TIMERS
# Members of `process` that say what runs, or call back later.
HARMLESS_PROCESS = frozenset(
    "argv nextTick exitCode platform arch version versions hrtime uptime memoryUsage pid".split())
# Functions that look up a property by a name that is passed to them.
REFLECTING = frozenset(
    "getOwnPropertyDescriptor getOwnPropertyDescriptors getOwnPropertyNames ownKeys entries values assign "
    "defineProperty fromEntries".split()
)
DECODING = frozenset(
    "fromCharCode fromCodePoint atob decodeURIComponent decodeURI unescape reverse decode from".split())
JOINING = frozenset(
    "join concat replace replaceAll slice substring substr repeat split at charAt toLowerCase trim".split())
URL = re.compile(r"\s*(?:data|blob|file|https?):", re.I)
_PROGRAM_URL = re.compile(
    r"(?:javascript|vbscript):|data:(?:text|application)/[\w.+-]*(?:javascript|ecmascript|html)", re.I)


def is_program_url(text: str, whole: bool = True) -> bool:
    """Report whether a text is a URL that runs a program, as browsers read it. If more follows the text, it may be
    the scheme alone."""
    url = re.sub(r"[\t\n\r]|\\[tnr]", "", text).lstrip("".join(map(chr, range(33))))
    return bool(_PROGRAM_URL.match(url)) or (not whole and url.lower() in ("javascript", "vbscript"))
