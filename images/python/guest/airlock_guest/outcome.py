"""Turns how the code ended into the params of `run/finish`, and delivers them.

Nothing here trusts what the code has left behind: each try may meet a replaced
builtin, a pending signal, a recursion limit of ten or no memory at all.
"""

import sys
from _signal import SIG_BLOCK, pthread_sigmask, valid_signals

from airlock_guest import output
from airlock_guest.repair import free, repair
from client.codec import NotSerializable, encode

MAX_PARAMS = (16 << 20) - 1024  # bytes; the rest of a frame is for its other members

_TRIES = 3
_SIGNALS = valid_signals()  # made ahead: to block them is one call then, which no handler comes before

# The advice for a result that is too large. The host has the same sentence.
_ADVICE = (
    "return a summary, and hand over the rest with client.attach or keep it in /workspace/session for the next run"
)
_KEPT = "all of it is in %s: read that file, and return a summary"

_DISK_FULL = " (the sandbox's disk is full: keep less, or work in pieces)"

_LAST_WORDS = (
    '{"ok":false,"error":{"type":"SandboxError","message":"the code has ended, but it broke its interpreter '
    'so far that nothing more can be said","source":"code"}}'
)


def deliver(link, ending):
    """Tell the host how the code ended; report whether the host has heard it."""
    for _ in range(_TRIES):
        try:
            _prepare(ending)
            params = _params(ending)
            _save(ending)  # after the params, because a large result is kept in a file
            link.finish(params)
            return True
        except BaseException:  # the code may have installed hooks that run here
            continue
    try:
        _save(ending)
        link.finish(_LAST_WORDS)
        return True
    except BaseException:
        return False


def _save(ending):
    """Save the session's files, once."""
    session, ending.session = ending.session, None
    if session is not None:
        session.save()


def rehearse(ending):
    """Do what delivering does, up to the delivery itself."""
    pthread_sigmask(SIG_BLOCK, ())
    _flush()
    _params(ending)


def _prepare(ending):
    pthread_sigmask(SIG_BLOCK, _SIGNALS)
    repair()
    if isinstance(ending.failure, MemoryError):
        free(ending.failure, ending.namespace)
    _flush()


def _flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except BaseException:  # the code may have closed or replaced it
            continue
    output.flush()


def _params(ending):
    failure = ending.failure
    if isinstance(failure, SystemExit):
        return _after_exit(failure.code, ending)
    if failure is not None:
        from airlock_guest.failure import describe

        return _failed(describe(failure, ending.namespace, ending.code))
    return _succeeded(ending)


def _after_exit(status, ending):
    """Judge sys.exit(status) as a shell would: None and 0 are success, text is 1."""
    if status is None or (isinstance(status, int) and status == 0):
        return _succeeded(ending)
    from airlock_guest.hints import hint_for_exit

    advice = hint_for_exit(status, ending.code)
    advice = f" ({advice})" if advice else ""
    if ending.failure.__context__ is not None:
        from airlock_guest.disk import is_disk_full

        if is_disk_full(ending.failure):
            return _failed({"type": "DiskLimit", "message": _text(status) + _DISK_FULL, "source": "code"})
    if isinstance(status, int):
        return _exited(int(status), f"the code ended with exit code {int(status)}{advice}")
    return _exited(1, _text(status) + advice)


def _exited(status, message):
    error = {"type": "NonZeroExit", "message": message, "source": "code"}
    return _failed(error, status if abs(status) < 1 << 31 else 1)


def _text(status):
    """Return the text of sys.exit(text), which Python prints to stderr."""
    from airlock_guest.failure import message_of, print_error

    message = message_of(status)
    print_error(message + "\n")
    return message


def _succeeded(ending):
    if ending.script:
        return '{"ok":true,"has_result":false}'
    namespace = ending.namespace
    has_result = "result" in namespace
    forgotten = _forgotten_await(ending, has_result)
    if forgotten:
        return _failed({"type": "RuntimeWarning", "message": forgotten, "source": "code"})
    if not has_result:
        from airlock_guest.notes import note

        return f'{{"ok":true,"has_result":false,"note":{encode(note(ending.code), "note")}}}'
    try:
        data = encode(namespace["result"], "result")
    except NotSerializable as problem:
        return _failed({"type": "ResultNotSerializable", "message": str(problem), "source": "code"})
    params = f'{{"ok":true,"has_result":true,"data":{data}}}'
    size = len(params.encode())
    if size > MAX_PARAMS:
        kept = ending.session.keep_result(data) if ending.session is not None else None
        advice = _KEPT % kept if kept else _ADVICE
        message = f"the result takes {size} bytes as JSON, far more than a run returns; {advice}"
        return _failed({"type": "OutputLimit", "message": message, "source": "code"})
    return params


def _forgotten_await(ending, has_result):
    """Return a sentence on the first `await` that was forgotten and mattered, or None.

    A tool call that was never awaited was never made, so it always matters. The
    code's own coroutine matters only if there is no result, because it would have set one.
    """
    unawaited = [*ending.unawaited, *_unstarted(ending.namespace)]
    for name, file in unawaited:
        if "/servers/" in file or "/client/" in file:
            return f"{name}(...) was never awaited, so the tool was not called: write `await {name}(...)`"
    if unawaited and not has_result:
        name = unawaited[0][0]
        return f"{name}(...) was never awaited, so it did not run: write `await {name}(...)`"
    return None


def _unstarted(namespace):
    """Return the coroutines that globals still hold and that never started."""
    held = [value for value in namespace.values() if type(value) is _Coroutine]
    created = [c for c in held if c.cr_frame is not None and not c.cr_running and not c.cr_suspended]
    return [(coroutine.__name__, coroutine.cr_code.co_filename) for coroutine in created]


async def _nothing():
    return None


_probe = _nothing()
_Coroutine = type(_probe)
_probe.close()


def _failed(error, exit_code=None):
    extra = "" if exit_code is None else f',"exit_code":{exit_code}'
    return f'{{"ok":false,"error":{encode(error, "error")}{extra}}}'
