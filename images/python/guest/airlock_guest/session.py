"""The life of a guest: get ready, wait, run one program, deliver, exit."""

import builtins
import gc
import sys
from posix import O_RDONLY, _exit, close, dup2, getcwd, getpid, open, read, write
from select import poll

import client
from airlock_guest import bundle, execute, outcome, output, session_files
from airlock_guest.link import Link
from airlock_guest.on_import import import_without
from client.codec import decode, encode

# Exit status when the code has left an interpreter that can report nothing.
# The host then reports that the program ended without delivering a result.
BROKEN = 71

# What most code imports, and what the guest itself will need. Loaded ahead of
# time when there is time: each module takes memory in every waiting sandbox.
_USUAL = (
    "asyncio, atexit, collections, dataclasses, datetime, functools, itertools, json, math, random, re, threading,"
    " traceback, typing, warnings, client.catalog, client.mcp_client, airlock_guest.failure, airlock_guest.native"
).split(", ")

_rehearsals = []  # that functions of the image's packages have returned


def main():
    """Run one program from the host and exit; it does not return."""
    client.home_process = getpid()
    builtins.client = client  # `client.attach(…)` works without an import
    # The sandbox has no network that needs TLS, and `ssl` is a fifth of an idle guest's memory.
    import_without("asyncio", "ssl")
    if not _is_awaited():
        _preload()
    bundle.stop()
    execute.prepare()
    session_files.prepare()
    gc.freeze()  # these objects stay: the garbage collector can skip them
    gc.enable()
    write(1, _proof() + b"ready\n")
    word = _await_start()
    _freshen()
    if word != b"now":
        _rehearse()
    link = Link()
    start = link.start()
    granted = start.get("session")
    session = session_files.SessionFiles(link, granted) if granted else None
    ending = execute.run(start["code"], script=start.get("script", False))
    ending.session = session
    if "matplotlib.pyplot" in sys.modules:
        from airlock_guest.figures import attach_open

        attach_open(ending)
    delivered = outcome.deliver(link, ending)
    _exit(0 if delivered else BROKEN)


def _proof():
    """Return which kernel answers and which network devices there are: the host judges by it."""
    text = b""
    for path in ("/proc/version", "/proc/net/dev"):
        file = open(path, O_RDONLY)
        text += read(file, 4096)
        close(file)
    return text


def _is_awaited():
    """Report whether the host has already sent the start signal, so that there is no time to load ahead.

    A host that starts a sandbox for a run that waits writes the line at once; one
    that fills its pool writes it when a run comes.
    """
    poller = poll()
    poller.register(0)
    return bool(poller.poll(0))


def load_usual():
    """Load what a guest loads ahead of time; images/bundle.py calls it to see what that is."""
    for name in _USUAL:
        __import__(name)


def _preload():
    load_usual()
    for name in sys.argv[1:]:  # functions of the image's packages that load more: MODULE:FUNCTION
        module, _, function = name.partition(":")
        __import__(module)
        if rehearsal := getattr(sys.modules[module], function)():
            _rehearsals.append(rehearsal)
    output.prepare_to_hold()
    if len(sys.argv) > 1:
        gc.collect()  # packages leave a lot, which a saved sandbox would have


def _rehearse():
    """Execute a small rehearsal program once, like a run, that leaves nothing behind.

    A restored sandbox has its memory, but not yet mapped: each page costs a fault
    when it is first touched, and a run touches hundreds.
    """
    code = decode(encode({"code": execute.REHEARSAL}, "rehearsal"))["code"]
    outcome.rehearse(execute.rehearse(code))
    for rehearsal in _rehearsals:
        rehearsal()


def _await_start():
    """Wait for the start line, leave an empty stdin, and return the line.

    In a sandbox with a network, the host first sends what the sandbox must not
    reach, and judges by what happened.
    """
    line = _wait()
    if line.startswith(b"probe "):
        from airlock_guest.probe import probe

        write(1, _proof() + b"probe\n" + probe(line.decode().split()[1:]).encode() + b"ready\n")
        line = _wait()
    empty = open("/dev/null", O_RDONLY)
    dup2(empty, 0)
    close(empty)
    return line


def _wait():
    """Block until the host has written a line, and return it."""
    line = b""
    while not line.endswith(b"\n"):
        if not (chunk := read(0, 4096)):
            _exit(0)  # the host is gone: the sandbox is not needed
        line += chunk
    return line.strip()


def _freshen():
    """Forget what a sandbox restored from a checkpoint would share with its siblings."""
    for name in ("random", "sympy.core.random"):
        if name in sys.modules:
            sys.modules[name].seed()
    if "ssl" in sys.modules:
        from os import urandom

        sys.modules["ssl"].RAND_add(urandom(32), 32.0)
    # The wrappers may be mounted after the checkpoint.
    workspace = getcwd()
    for path in list(sys.path_importer_cache):
        if path.startswith(workspace):
            del sys.path_importer_cache[path]
