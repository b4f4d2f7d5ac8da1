"""The analyser of Python: what must be blocked, and what models write and must pass."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from qwed_new.engines.code import verify_code

PROGRAMS = Path(__file__).parent / "programs"
EVASIONS = [line.replace("⏎", "\n") for line in (PROGRAMS / "evasions.txt").read_text().splitlines()]
HARMLESS = [program.strip() for program in (PROGRAMS / "harmless.txt").read_text().split("\n---\n")]


def test_there_are_enough_of_both_and_none_twice() -> None:
    assert len(set(EVASIONS)) == len(EVASIONS) >= 150
    assert len(set(HARMLESS)) == len(HARMLESS) >= 150


@pytest.mark.row("Q-033", "Q-116", "Q-117", "P-010")
@pytest.mark.parametrize("program", EVASIONS, ids=lambda p: p[:50].replace("\n", "; "))
def test_evasions_are_blocked(program: str) -> None:
    verdict = verify_code(program, "python")
    assert verdict.status == "BLOCKED" and verdict.vulnerabilities, program
    assert all(v.severity and v.message for v in verdict.vulnerabilities)


@pytest.mark.row("Q-118", "Q-071")
@pytest.mark.parametrize("program", HARMLESS, ids=lambda p: p[:50].replace("\n", "; "))
def test_harmless_programs_pass(program: str) -> None:
    ast.parse(program)
    verdict = verify_code(program, "python")
    assert verdict.status == "VERIFIED", f"{verdict.message}\n{program}"


def test_the_analysis_of_huge_programs_ends() -> None:
    for program in (
        "(" * 5000 + ")" * 5000, "x=1\n" * 100_000, "-" * 100_000 + "1", "x" * 2_000_000, "a=" * 5000 + "1",
        "[" * 300 + "]" * 300):
        assert verify_code(program, "python").status in ("VERIFIED", "BLOCKED", "INCONCLUSIVE")
    assert verify_code("print(1)", "python").verified
