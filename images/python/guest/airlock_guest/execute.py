"""Runs code as `__main__`, as the interpreter runs a script, plus top-level `await`."""

import sys
from _ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from _io import TextIOWrapper, _IOBase
from _signal import SIG_BLOCK, pthread_sigmask, valid_signals
from gc import get_objects
from posix import write

from airlock_guest import output
from airlock_guest.on_import import when_imported
from airlock_guest.repair import keep, repair

NAME = "<agent_code>"  # the name of the code in tracebacks
REHEARSAL = "import json\nresult = {str(n): [n, None] for n in range(3)}\n"

_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE
_SIGNALS = valid_signals()  # made ahead: to block them is one call then, which no handler comes before
_ModuleType = type(sys)


class Ending:
    """How the code ended.

    `failure` is the exception that reached the top, or None. `namespace` holds the
    globals, `code` the program's text. `unawaited` lists the coroutines that were dropped without `await`, as
    pairs of function name and file. A `script` has no result. `session` has the files for the
    session's next run, or is None.
    """

    def __init__(self, namespace, code, script=False):
        self.namespace = namespace
        self.code = code
        self.script = script
        self.failure = None
        self.unawaited = []
        self.session = None


def prepare():
    """Do what every run needs and no code has a part in."""
    output.prepare()
    keep("print")
    _offer_site_names()


def rehearse(code):
    """Run `code`, which is ours and harmless, beside everything that a run changes; return its Ending."""
    ending = Ending({"__builtins__": sys.modules["builtins"]}, code)
    _execute(code, ending.namespace)
    repair()
    return ending


def run(code, script=False):
    """Run `code` to its end, wait for its threads and exit handlers, and return its Ending.

    A script is run as it is: what judged it has seen the same text.
    """
    main = _ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    main.__file__ = NAME
    sys.modules["__main__"] = main
    sys.argv = [NAME]
    if script:
        _clear_environment()
    else:
        code = _unwrapped(code)
    ending = Ending(main.__dict__, code, script)
    when_imported("linecache", lambda linecache: _publish(code, linecache))
    when_imported("multiprocessing.spawn", lambda _: _write(code))
    when_imported("warnings", lambda warnings: _watch_coroutines(warnings, ending.unawaited))
    # A signal handler of the code may raise wherever Python looks for signals: at each
    # call, all of which are guarded here, and at the end of a loop, and this code has no loop.
    try:
        _execute(code, ending.namespace)
    except BaseException as failure:
        ending.failure = failure
    try:
        repair()
    except BaseException:  # a trace function of the code; Python drops it when it raises
        pass
    ignored = None
    try:
        _wind_down()
        _flush_files()
    except BaseException as raised:  # of a signal: the program itself has ended, as in Python
        ignored = raised
    try:
        pthread_sigmask(SIG_BLOCK, _SIGNALS)
    except BaseException:  # of a signal that came before; they are blocked nevertheless
        pass
    try:
        if ignored is not None:
            _note_ignored(ignored)
        repair()
    except BaseException:
        pass
    return ending


def _clear_environment():
    """Leave what a script may see: the sandbox adds names, and the interpreter sets LC_CTYPE."""
    from os import environ

    for name in environ.keys() - {"PATH", "PYTHONPATH", "LC_CTYPE"}:
        del environ[name]


def _unwrapped(code):
    """Return the program without what only wraps it: a byte order mark, a Markdown fence."""
    code = code.removeprefix("\ufeff")
    if code.lstrip()[:3] not in ("```", "~~~"):
        return code
    from airlock_guest.source import without_fence

    return without_fence(code)


def _compile(code):
    try:
        return compile(code, NAME, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as refused:
        if refused.msg != "'return' outside function":
            raise
        from airlock_guest.source import with_returns

        tree = with_returns(code, NAME, PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if tree is None:  # one in the body of a class
            raise
        return compile(tree, NAME, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _execute(code, namespace):
    compiled = _compile(code)
    if compiled.co_flags & _CO_COROUTINE:
        _run_in_loop(eval(compiled, namespace))
        return
    try:
        exec(compiled, namespace)
    except BaseException as failure:
        inner = failure.__traceback__.tb_next  # behind this frame
        if inner is None or inner.tb_frame.f_code is compiled:
            raise
        try:
            _note_ignored(failure)  # a signal's handler raised it behind the last line
        except BaseException:  # of another signal
            pass


def _run_in_loop(main):
    import asyncio

    with asyncio.Runner() as runner:
        try:
            runner.run(main)
        finally:
            left = asyncio.all_tasks(runner.get_loop())
            if left:
                _note_cancelled(left)


def _note_cancelled(tasks):
    output.flush()
    names = sorted(getattr(task.get_coro(), "__qualname__", "?") for task in tasks)
    try:
        write(2, f"airlock: tasks that still ran when the code ended were cancelled: {', '.join(names[:5])}\n".encode())
    except OSError:  # the code has closed its stderr
        return


def _wind_down():
    """Do what an interpreter does when its script has ended: wait for threads, run exit handlers."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit

    atexit._run_exitfuncs()


def _flush_files():
    """Write what files that the code has not closed still hold, as an interpreter's end does."""
    files = [thing for thing in get_objects() if issubclass(type(thing), _IOBase)]
    files.sort(key=lambda file: not issubclass(type(file), TextIOWrapper))  # they write to the others
    for file in files:
        try:
            file.flush()
        except Exception:  # it is closed, or the disk is full
            continue


def _note_ignored(failure):
    try:
        write(2, f"Exception ignored while the program ended: {type(failure).__name__}\n".encode())
    except BaseException:  # the code has closed its stderr, or another signal came
        return


def _offer_site_names():
    """Add the builtins that `site` would have added."""
    import builtins
    from _sitebuiltins import Quitter, _Helper

    builtins.exit = Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _Helper()


def _publish(code, linecache):
    """Let `linecache`, and with it tracebacks and `inspect`, find the code's text.

    It reads no file with a name in angle brackets, so its cache has to hold it.
    """
    lines = code.splitlines(keepends=True)
    linecache.cache[NAME] = (len(code), None, lines, NAME)


def _write(code):
    """Give child processes that are not forks the file that they load as their main module."""
    with open(NAME, "w", encoding="utf-8") as file:
        file.write(code)


def _watch_coroutines(warnings, dropped):
    """Add to `dropped` each coroutine that Python warns was never awaited."""
    def note(coroutine):
        code = getattr(coroutine, "cr_code", None)
        dropped.append((coroutine.__name__, code.co_filename if code else ""))
        warnings.warn(f"coroutine {coroutine.__qualname__!r} was never awaited", RuntimeWarning, stacklevel=2)

    warnings._warn_unawaited_coroutine = note
