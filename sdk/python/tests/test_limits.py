"""Time limits: in any thread, at any moment, nothing left behind."""

from __future__ import annotations

import threading
import time

import pytest

from qwed_new.limits import TimeLimit, limited, within


def _busy(seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


def _deaf(seconds: float) -> str:
    """Swallows what is raised in it, as finalizers do, but for the last."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            _busy(seconds)
        except TimeLimit:
            continue
    return "done"


def test_what_is_quick_returns_and_what_is_slow_ends() -> None:
    assert limited(5, lambda: 3) == 3 and within(5, lambda: 3) == 3
    with pytest.raises(TimeLimit):
        limited(0.05, _busy, 30)
    assert within(0.05, _busy, 30) is None
    with pytest.raises(ZeroDivisionError):
        limited(5, lambda: 1 / 0)


def test_limits_that_end_with_the_computation_leave_nothing_behind() -> None:
    """The computation ends at the moment of its limit, many times: nothing is raised later, and no thread is left."""
    before = threading.active_count()
    outcomes = set()
    for i in range(300):
        outcomes.add(within(0.002, _busy, 0.0018 + (i % 9) * 0.00005))
    _busy(0.6)  # more than twice the pause of a watch that was left on
    assert outcomes <= {"done", None} and threading.active_count() == before


def test_what_swallows_the_limit_is_told_again() -> None:
    assert within(0.05, _deaf, 0.4) in ("done", None)
    _busy(0.6)


def test_limits_nest_and_the_outer_one_holds() -> None:
    def inner() -> str:
        while True:
            within(0.05, _busy, 30)

    with pytest.raises(TimeLimit):
        limited(0.5, inner)
    _busy(0.6)


def test_an_outer_limit_meets_the_start_of_an_inner_one() -> None:
    """CPython gives a new thread the ident of its parent at first, so the outer limit can end the inner one's watch."""

    def inner() -> str:
        while True:
            within(0.005, _busy, 30)

    for _ in range(30):
        with pytest.raises(TimeLimit):
            limited(0.05, inner)


def test_limits_work_in_threads() -> None:
    answers: list[str | None] = []

    def work() -> None:
        answers.append(within(0.05, _busy, 30))
        answers.append(within(5, _busy, 0.01))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, answers)) == ["None"] * 4 + ["done"] * 4
