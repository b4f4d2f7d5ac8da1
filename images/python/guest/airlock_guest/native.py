"""Holds bytes in the C library's own buffers, and lets a thread of it write them.

A timer of the kernel calls the C library's `fflush`, in a thread that the C library
starts for it (SIGEV_THREAD): nothing of the interpreter takes part. Loaded when a
program prints a lot.
"""

from ctypes import (
    CDLL,
    PyDLL,
    Structure,
    Union,
    addressof,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_long,
    c_size_t,
    c_ulong,
    c_void_p,
    cast,
    create_string_buffer,
)  # fmt: skip

_CLOCK_MONOTONIC = 1
_SIGEV_THREAD = 2
_FULLY_BUFFERED = 0  # _IOFBF

# Holding is quick, and keeps Python's lock; writing may wait, and gives it up.
_holding, _writing = PyDLL(None), CDLL(None)
# Declared types of arguments and of what is returned would double what a call costs.
# These two are only ever given bytes, numbers below 2³¹ and objects of ctypes.
_fwrite, _settime = _holding.fwrite, _holding.timer_settime
_fwrite.restype = _settime.restype = None
_fdopen = _holding.fdopen
_fdopen.argtypes, _fdopen.restype = (c_int, c_char_p), c_void_p
_setvbuf = _holding.setvbuf
_setvbuf.argtypes = (c_void_p, c_void_p, c_int, c_size_t)
_fflush = _writing.fflush
_fflush.argtypes = (c_void_p,)

_LARGE = 1 << 31
_WRITE_POINTER = (
    5  # the pointer in a FILE to the end of the held output; its layout is part of the C library's binary interface
)


class _Function(Structure):
    _fields_ = [("function", c_void_p), ("attributes", c_void_p)]


class _Notice(Union):
    _fields_ = [("thread", _Function), ("room", c_char * 48)]


class _Event(Structure):  # struct sigevent
    _fields_ = [("value", c_void_p), ("signal", c_int), ("kind", c_int), ("notice", _Notice)]


class _Setting(Structure):  # struct itimerspec
    _fields_ = [("every_s", c_long), ("every_ns", c_long), ("after_s", c_long), ("after_ns", c_long)]


_timer = c_void_p()
_files = {}  # descriptor → (FILE, its buffer)


def restart():
    """Make the timer and forget all files, in a process that has neither. Raises OSError."""
    _files.clear()
    event = _Event(value=None, signal=0, kind=_SIGEV_THREAD)  # fflush(NULL) is for all files
    event.notice.thread.function = cast(_holding.fflush, c_void_p).value
    if _holding.timer_create(_CLOCK_MONOTONIC, byref(event), byref(_timer)):
        raise OSError("no timer")


def holder(descriptor, room, begun):
    """Return a function that holds bytes for a descriptor and returns how many they are.

    It writes what is held when that is more than `room` bytes. It calls `begun` with
    the bytes if nothing else is held, so that no other thread may be about to write them.
    """
    if descriptor not in _files:
        buffer = create_string_buffer(room)
        file = c_void_p(_fdopen(descriptor, b"w"))
        _setvbuf(file, buffer, _FULLY_BUFFERED, room)
        _files[descriptor] = file, buffer
    file, buffer = _files[descriptor]
    words = memoryview((c_ulong * (_WRITE_POINTER + 1)).from_address(file.value)).cast("B").cast("L")
    pointer = byref(c_char.from_address(file.value))  # costs less to hand over than `file`
    fwrite, start = _fwrite, addressof(buffer)

    def hold(data):
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        size = len(data)
        fwrite(data, 1, size if size < _LARGE else c_size_t(size), pointer)
        # The write comes first: a flush in between includes these bytes.
        if words[_WRITE_POINTER] - start <= size:
            begun(data)
        return size

    return hold


def timer(seconds):
    """Return a function that writes everything in that time, even if the interpreter is busy."""
    setting = byref(_Setting(after_ns=int(seconds * 1e9)))
    return lambda: _settime(_timer, 0, setting, None)


def flush():
    """Write everything now."""
    _fflush(None)
