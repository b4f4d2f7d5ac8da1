"""Streams that cost little and lose nothing when the program is killed.

What is printed now and then is written at once, a system call a line. Code that
prints a lot has used up its share of those soon (_BURST, _RATE): from then on its
output is held for up to _TICK seconds, and then written by a thread of the C
library, which needs neither Python's lock nor its help: not even a call that keeps
the lock for minutes, or takes all memory, delays it. What ends the process or lets
another one print writes what is held first: `flush`.
"""

import sys
from _io import TextIOWrapper, _BufferedIOBase
from posix import register_at_fork, write
from time import monotonic

_BURST = 32  # writes that may be made at once
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
_native = None  # the module airlock_guest.native, once output is held; False where none can be


class Output(_BufferedIOBase):
    """What a TextIOWrapper writes to: the bytes of one descriptor."""

    mode = "wb"

    def __init__(self, descriptor, name):
        self.name = name
        self._descriptor = descriptor
        self._left = _BURST
        self._since = None  # when _left was right
        self._hold = None  # holds bytes; None while none are
        self._begun = b""  # a line whose end has not come, where none can be held

    def write(self, data):
        if type(data) is not bytes:
            data = bytes(data)
        hold = self._hold
        if hold is None:
            return self._write(data)
        first = hold(data)  # nothing was held, so nothing is on its way
        if first or self._left >= 1:
            self._settle(data, first)
        return len(data)

    def _write(self, data):
        """Write whole lines at once, or begin to hold."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if self._left < 1:
            self._refill()
        # print writes each of its arguments by itself: one system call is enough for all.
        if data and (self._left < 1 or not data.endswith(b"\n")) and _start():
            self._hold = _native.holder(self._descriptor, _HELD)
            self._hold(data)
            _native.write_after(_TICK)
            return len(data)
        size = len(data)
        if self._begun:
            data, self._begun = self._begun + data, b""
        if _native is False and not data.endswith(b"\n") and len(data) < _HELD:
            self._begun = data
            return size
        self._left -= 1
        self._through(data)
        return size

    def _settle(self, data, first):
        """Write what is held if its line is complete, or else see to it that it will be."""
        if self._left < 1:
            self._refill()
        if self._left >= 1 and data.endswith(b"\n"):
            self._left -= 1
            self.flush()
        elif first:
            _native.write_after(_TICK)

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
        if self._hold is not None:
            self._hold = None
            _native.flush()
        if self._begun:
            data, self._begun = self._begun, b""
            self._through(data)

    def forget(self):
        """Leave what is held to the process that this one was forked from."""
        self._hold, self._begun = None, b""

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


def _start():
    """Get ready to hold output; report whether that is possible."""
    global _native
    if _native is None:
        try:
            from airlock_guest import native

            native.restart()
        except Exception:  # no thread may be left to start
            _native = False
            return False
        _native = native
        _watch_once()
    return bool(_native)


def _watch_once():
    if not _watched:
        _watched.append(True)
        _watch()


def _watch():
    """Write what is held before anything that this module does not do itself."""

    def hear(event, arguments):
        if event in _FLUSH_BEFORE:
            flush()

    sys.addaudithook(hear)
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
