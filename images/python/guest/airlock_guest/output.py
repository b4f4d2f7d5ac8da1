"""Streams that cost little and lose nothing when the program is killed.

Occasional output is written at once, with one system call for each line. Code that
prints a lot has used up its share of those soon (_BURST, _RATE): from then on its
output is held for up to _TICK seconds, and then written by a thread of the C
library, which needs neither Python's lock nor its help: not even a call that keeps
the lock for minutes, or takes all memory, delays it. Calls that end the process or let
another one print writes what is held first: `flush`.
"""

import builtins
import sys
from _io import TextIOWrapper, _BufferedIOBase
from posix import register_at_fork, write
from time import monotonic

from airlock_guest.printing import printing

_BURST = 8  # writes that may be made at once
_RATE = 500  # more of them each second
_TICK = 0.005  # seconds that output is held at most
_HELD = 64 << 10  # bytes that are held at most

# Events of sys.audit after which another process may print, or this one ends.
_FLUSH_BEFORE = {
    "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.system", "pty.spawn",
    "signal.pthread_kill", "subprocess.Popen",
}  # fmt: skip
# Functions that announce no such event, by their modules.
_FLUSHING = {("posix", "os"): ("_exit", "abort", "write", "writev"), ("_signal", "signal"): ("raise_signal",)}

_watched = []  # not empty once _watch has been called
_native = None  # the module airlock_guest.native, once output is held; False if it cannot be held
_write_soon = None  # has what is held written within _TICK


class Output(_BufferedIOBase):
    """What a TextIOWrapper writes to: the bytes of one descriptor.

    While something may be held, the attribute `write` of the object is what holds more.
    """

    mode = "wb"

    def __init__(self, descriptor, name):
        self.name = name
        self._descriptor = descriptor
        self._left = _BURST
        self._since = None  # when _left was right
        self._hold = None  # holds bytes, once any were
        self._begun = b""  # an unfinished line, if output cannot be held

    def write(self, data):
        """Write whole lines at once, or begin to hold."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        if self._left < 1:
            self._refill()
        size = len(data)
        # print writes each of its arguments by itself: one system call is enough for all.
        if data and (self._left < 1 or not data.endswith(b"\n")) and _start():
            self.prepare_to_hold()
            self.write = self._hold if self._left < 1 else self._continue
            self._hold(data)
            return size
        if self._begun:
            data, self._begun = self._begun + data, b""
        if _native is False and not data.endswith(b"\n") and len(data) < _HELD:
            self._begun = data
            return size
        self._left -= 1
        self._through(data)
        return size

    def prepare_to_hold(self):
        if self._hold is None:
            self._hold = _native.holder(self._descriptor, _HELD, self._settle)

    def _continue(self, data):
        """Hold more of a line; write it when it is whole."""
        size = self._hold(data)
        if self.write == self._continue and data[-1:] == b"\n":
            self._left -= 1
            self.flush()
        return size

    def _settle(self, data):
        """Have these bytes written, before which nothing was held."""
        if self._left < 1:
            self._refill()
            if self._left >= 1:
                self.write = self._continue
        if self._left >= 1 and data.endswith(b"\n"):
            self._left -= 1
            self.flush()
        else:
            _write_soon()

    def _refill(self):
        # In a fresh sandbox asking for the time is a system call.
        now = monotonic()
        if self._since is not None:
            self._left = min(_BURST, self._left + (now - self._since) * _RATE)
        self._since = now

    def _through(self, data):
        view = memoryview(data).cast("B")
        size = rest = len(view)
        while rest:
            rest -= write(self._descriptor, view[size - rest :])

    def flush(self):
        """Write what is held."""
        if self._stop_holding():
            _native.flush()
        if self._begun:
            data, self._begun = self._begun, b""
            self._through(data)

    def forget(self):
        """Leave what is held to the process that this one was forked from."""
        self._stop_holding()
        self._begun = b""

    def _stop_holding(self):
        """Let the class's `write` be the one again; report whether it was another."""
        return self.__dict__.pop("write", None) is not None

    def writable(self):
        return True

    def fileno(self):
        return self._descriptor

    def isatty(self):
        return False


_outputs = Output(1, "<stdout>"), Output(2, "<stderr>")


def prepare():
    """Replace the interpreter's streams; any string can be printed."""
    for name, output in zip(("stdout", "stderr"), _outputs, strict=True):
        stream = TextIOWrapper(output, "utf-8", "backslashreplace", "\n", write_through=True)
        stream.mode = "w"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    builtins.print = printing(builtins.print, sys.stdout)
    register_at_fork(before=flush, after_in_child=_forget)


def flush():
    """Write what both streams hold."""
    for output in _outputs:
        output.flush()


def _forget():
    """Leave what is held to the parent. The child holds nothing but the line that it is printing.

    The C library's timers cannot be made after every fork: a lock of theirs may have been
    held by a thread that the child has not got.
    """
    global _native
    for output in _outputs:
        output.forget()
    _native = False
    _watch_once()


def prepare_to_hold():
    """Get ready to hold output before there is any: starting a thread takes milliseconds in a sandbox."""
    global _native, _write_soon
    try:
        from airlock_guest import native

        native.restart()
    except Exception:  # no thread may be left to start
        _native = False
    else:
        _native, _write_soon = native, native.timer(_TICK)
        _outputs[0].prepare_to_hold()


def _start():
    """Report whether output can be held."""
    if _native is None:
        prepare_to_hold()
    if _native and not _watched:
        _watch_once()
    return bool(_native)


def _watch_once():
    if not _watched:
        _watched.append(True)
        _watch()


def _watch():
    """Flush the buffered output before the program starts or signals a process, or writes to a descriptor itself."""

    def audit_hook(event, arguments):
        if event in _FLUSH_BEFORE:
            flush()

    sys.addaudithook(audit_hook)
    for modules, names in _FLUSHING.items():
        for name in names:
            ours = _flushing(getattr(sys.modules[modules[0]], name))
            for module in modules:
                if module in sys.modules:
                    setattr(sys.modules[module], name, ours)


def _flushing(function):
    def flushing(*args, **kwargs):
        flush()
        return function(*args, **kwargs)

    flushing.__name__ = flushing.__qualname__ = function.__name__
    flushing.__doc__ = function.__doc__
    return flushing
