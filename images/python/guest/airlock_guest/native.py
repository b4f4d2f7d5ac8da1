"""Holds bytes in the C library's own buffers, and lets a thread of it write them.

A timer of the kernel calls the C library's `fflush`, in a thread that the C library
starts for it (SIGEV_THREAD): nothing of the interpreter takes part. Loaded when a
program prints a lot.
"""

from ctypes import CDLL, POINTER, PyDLL, Structure, Union, byref, c_char, c_char_p, c_int, c_long, c_size_t, c_void_p, cast

_CLOCK_MONOTONIC = 1
_SIGEV_THREAD = 2
_FULLY_BUFFERED = 0  # _IOFBF

# Holding is quick, and keeps Python's lock; writing may wait, and gives it up.
_holding, _writing = PyDLL(None), CDLL(None)
_fwrite = _holding.fwrite
_fwrite.argtypes = (c_char_p, c_size_t, c_size_t, c_void_p)
_fwrite.restype = c_size_t
_fdopen = _holding.fdopen
_fdopen.argtypes, _fdopen.restype = (c_int, c_char_p), c_void_p
_setvbuf = _holding.setvbuf
_setvbuf.argtypes = (c_void_p, c_void_p, c_int, c_size_t)
_fpending = _holding.__fpending
_fpending.argtypes, _fpending.restype = (c_void_p,), c_size_t
_fflush = _writing.fflush
_fflush.argtypes = (c_void_p,)


class _Function(Structure):
    _fields_ = [("function", c_void_p), ("attributes", c_void_p)]


class _Notice(Union):
    _fields_ = [("thread", _Function), ("room", c_char * 48)]


class _Event(Structure):  # struct sigevent
    _fields_ = [("value", c_void_p), ("signal", c_int), ("kind", c_int), ("notice", _Notice)]


class _Setting(Structure):  # struct itimerspec
    _fields_ = [("every_s", c_long), ("every_ns", c_long), ("after_s", c_long), ("after_ns", c_long)]


_settime = _holding.timer_settime
_settime.argtypes = (c_void_p, c_int, POINTER(_Setting), c_void_p)

_timer = c_void_p()
_files = {}  # descriptor → FILE


def restart():
    """Make the timer and forget all files, in a process that has neither. Raises OSError."""
    _files.clear()
    event = _Event(value=None, signal=0, kind=_SIGEV_THREAD)  # fflush(NULL) is for all files
    event.notice.thread.function = cast(_holding.fflush, c_void_p).value
    if _holding.timer_create(_CLOCK_MONOTONIC, byref(event), byref(_timer)):
        raise OSError("no timer")


def holder(descriptor, room):
    """Return a function that holds bytes for a descriptor, up to `room`.

    It reports whether the bytes are all that is held now.
    """
    file = _files.get(descriptor)
    if file is None:
        file = _files[descriptor] = c_void_p(_fdopen(descriptor, b"w"))
        _setvbuf(file, None, _FULLY_BUFFERED, room)
    fwrite, fpending = _fwrite, _fpending

    def hold(data):
        size = len(data)
        fwrite(data, 1, size, file)
        return fpending(file) <= size

    return hold


def write_after(seconds):
    """Have everything written in that time, whatever the interpreter does."""
    _settime(_timer, 0, byref(_Setting(after_ns=int(seconds * 1e9))), None)


def flush():
    """Write everything now."""
    _fflush(None)
