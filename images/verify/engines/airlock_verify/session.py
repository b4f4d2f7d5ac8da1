"""The life of the guest: load the engines, wait, answer one request, exit."""

import base64
import gc
import json
import sys
from os import _exit, read, urandom, write
from select import poll
from socket import AF_UNIX, SOCK_STREAM, socket

from qwed_new import strict_json
from qwed_sdk import engine

_SOCKET = "/run/airlock/broker.sock"
_MAX_FRAME = 16 << 20  # bytes, its newline included
_REHEARSAL = (
    '{"engine": "math", "arguments": {"expression": "(x + 1)**2 = x**2 + 2*x + 1"}}',
    '{"engine": "logic", "arguments": {"query": "(AND (GT x 5) (LT y 10))"}}',
    '{"engine": "code", "arguments": {"code": "from sympy import pi\\nprint(pi)", "language": "python"}}',
)
_IMAGE = "/tmp/image"
_BROKEN = 71  # exit status when the host does not answer as it must


def main():
    """Answer one request from the host and exit; it does not return."""
    if not _is_awaited():
        engine.preload()
        # These objects stay: the garbage collector can skip them and does not touch their pages.
        gc.collect()
        gc.freeze()
    write(1, _proof() + b"ready\n")
    word = _wait()
    _freshen()
    if word != b"now":
        _rehearse()
    link = socket(AF_UNIX, SOCK_STREAM)
    link.connect(_SOCKET)
    asked = _exchange(link, "verify/start", {})
    _exchange(link, "verify/finish", {"verdict": _answer(asked["request"], asked["seconds"])})
    _exit(0)


def _proof():
    """Return which kernel answers and which network devices there are: the host judges by it."""
    text = b""
    for path in ("/proc/version", "/proc/net/dev"):
        with open(path, "rb") as file:
            text += file.read()
    return text


def _answer(request, seconds):
    try:
        return engine.answer_json(_with_image(request), seconds)
    except (ValueError, TypeError, RecursionError):
        return '{"status": "INCONCLUSIVE", "message": "the request or the verdict has no JSON form"}'


def _with_image(request):
    """The request with the image that it carries in a file; anything else as it is."""
    if '"image_base64"' not in request:
        return request
    asked = strict_json.loads(request)
    arguments = asked["arguments"]
    if asked["engine"] != "image" or not isinstance(arguments.get("image_base64"), str):
        return request
    try:
        content = base64.b64decode(arguments["image_base64"], validate=True)
    except ValueError:
        return request  # the engine's message contains what to write
    del arguments["image_base64"]
    with open(_IMAGE, "wb") as file:
        file.write(content)
    return json.dumps({**asked, "arguments": {**arguments, "image_path": _IMAGE}})


def _is_awaited():
    """Report whether the host has already sent the start signal. Then only the engine of the request is loaded."""
    poller = poll()
    poller.register(0)
    return bool(poller.poll(0))


def _wait():
    """Block until the host has written a line, and return it; the sandbox is saved and restored at this point."""
    line = b""
    while not line.endswith(b"\n"):
        if not (chunk := read(0, 4096)):
            _exit(0)  # the host is gone
        line += chunk
    return line.strip()


def _rehearse():
    """Let engines decide while no request waits.

    A restored sandbox has its memory, but not yet mapped: each page costs a fault
    when it is first touched, and a verdict touches hundreds.
    """
    for request in _REHEARSAL:
        engine.answer_json(request)


def _freshen():
    """Draw new random numbers: a restored sandbox would share its siblings'."""
    for name in ("random", "sympy.core.random"):
        if name in sys.modules:
            sys.modules[name].seed(int.from_bytes(urandom(16)))


def _exchange(link, method, params):
    """Send one request and return the result of its answer."""
    frame = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}, ensure_ascii=False)
    link.sendall(frame.encode("utf-8", "replace") + b"\n")
    parts, size = [], 0
    while not parts or not parts[-1].endswith(b"\n"):
        chunk = link.recv(1 << 18)
        size += len(chunk)
        if not chunk or size > _MAX_FRAME:
            _exit(_BROKEN)
        parts.append(chunk)
    return strict_json.loads(b"".join(parts))["result"]
