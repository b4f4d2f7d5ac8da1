"""Tells a full disk from other failures."""

from errno import ENOSPC
from posix import statvfs

_MOST_CAUSES = 20
_PLACES = ("/workspace", "/tmp", "/dev/shm")  # the directories that can be written
_name_of = type.__dict__["__name__"].__get__


def is_disk_full(failure):
    """Report whether a full disk made the code fail: itself, a child process, or what it raised then."""
    for _ in range(_MOST_CAUSES):
        if failure is None:
            return False
        if isinstance(failure, OSError) and failure.errno == ENOSPC:
            return True
        name = _name_of(type(failure))
        if name == "OperationalError" and "disk is full" in str(failure):  # sqlite3
            return True
        if name == "CalledProcessError" and any(statvfs(place).f_bavail == 0 for place in _PLACES):
            return True
        failure = failure.__cause__ or failure.__context__
    return False
