"""Loads the modules that a guest needs at its start from one file, the bundle.

gVisor keeps a name and an inode, of some thirty objects together, for each file that was
opened or looked for, and every sandbox restored from a saved one makes them all anew. The
files of the modules stay in place: a module that is loaded from the bundle has the same
`__spec__`, `__file__` and `__cached__` as what is loaded from them.

A bundle is 8 bytes that hold the length of an index, least significant first; the index, a
marshalled dict: name of a module → its file, and where in the bundle its code begins and how
long that is; then the code of all, marshalled, in the order in which a guest needs it.
images/bundle.py writes it.
"""

import sys
from _frozen_importlib_external import PathFinder, SourceFileLoader, spec_from_file_location
from _functools import partial
from _imp import _fix_co_filename
from marshal import loads
from posix import O_CLOEXEC, O_RDONLY, close, open, pread

FILE = "/opt/airlock/modules.bundle"

_LENGTH = 8  # bytes of the index's length
_PART = 96 << 10  # bytes that are read at a time: a system call takes longer in a sandbox than copying them


def use():
    """Load the modules in the bundle from it, until `stop`; without a bundle, do nothing."""
    try:
        fd = open(FILE, O_RDONLY | O_CLOEXEC)
    except OSError:
        return
    length = int.from_bytes(pread(fd, _LENGTH, 0), "little")
    sys.meta_path.insert(
        sys.meta_path.index(PathFinder), _Finder(fd, _LENGTH + length, loads(pread(fd, length, _LENGTH))))


def stop():
    """Load modules from their own files from now on, as if there had been no bundle."""
    for finder in sys.meta_path[:]:
        if isinstance(finder, _Finder):
            sys.meta_path.remove(finder)
            close(finder.fd)


class _Finder:
    """Finds the modules of a bundle."""

    def __init__(self, fd, start, index):
        self.fd = fd
        self._start = start
        self._index = index
        self._part = b""  # of the bundle
        self._offset = 0  # where it begins

    def find_spec(self, name, path=None, target=None):
        found = self._index.get(name)
        if found is None:
            return None
        file, offset, length = found
        loader = SourceFileLoader(name, file)
        loader.get_code = partial(self._code, loader, self._start + offset, length)
        return spec_from_file_location(name, file, loader=loader)

    def _code(self, loader, offset, length, name):
        # A later request to the loader, such as a reload, gets the contents of the file.
        del loader.get_code
        if not self._offset <= offset <= offset + length <= self._offset + len(self._part):
            self._part, self._offset = pread(self.fd, max(length, _PART), offset), offset
        code = loads(memoryview(self._part)[offset - self._offset:])
        _fix_co_filename(code, loader.path)  # that of the client was compiled in another directory
        return code
