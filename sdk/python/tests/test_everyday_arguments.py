"""Everyday English arguments (issue 26.8): valid ones are proven, invalid ones are refuted, and nothing else is
decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwed_new.engines.logic_engine import verify_logic_statement

LINES = (Path(__file__).parent / "programs" / "arguments.txt").read_text().splitlines()
ARGUMENTS = [line for line in LINES if line and not line.startswith("//")]
WANTED = {"V": "VERIFIED", "E": "ERROR", "?": "INCONCLUSIVE"}


def test_there_are_enough_arguments() -> None:
    assert len(set(ARGUMENTS)) == len(ARGUMENTS) >= 190


@pytest.mark.row("Q-055", "Q-070")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_everyday_arguments(argument: str) -> None:
    kind, rest = argument[0], argument[2:]
    given, conclusion = rest.split(" => ")
    verdict = verify_logic_statement([p.strip() for p in given.split("|")], conclusion.strip())
    assert verdict.status == WANTED[kind], verdict
    assert kind != "E" or verdict.counterexample is not None
    words = ("'", "several", "one or both", "who is a person", "which numbers")
    assert kind != "?" or any(w in verdict.message for w in words)
