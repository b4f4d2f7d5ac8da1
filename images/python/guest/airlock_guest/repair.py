"""Undoes what code may have done to the interpreter that keeps our own code from running."""

import builtins
import sys

_RECURSION_LIMIT = 1000  # Python's default
_builtins = dict(vars(builtins))


def keep(name):
    """Let a builtin be restored as what it is now."""
    _builtins[name] = vars(builtins)[name]


def repair():
    """Restore builtins and the recursion limit, and stop tracing and profiling."""
    sys.settrace(None)
    sys.setprofile(None)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    vars(builtins).update(_builtins)


def free(failure, namespace):
    """Let go of all that the code holds, after it has used up the memory it may have."""
    at = failure.__traceback__
    while at is not None:
        try:
            at.tb_frame.clear()
        except RuntimeError:  # ours, which still runs
            pass
        at = at.tb_next
    namespace.clear()
