"""Inequalities beyond polynomials."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwed_new.engines.math import verify_math

CASES = [
    tuple(line.split(" ", 1))
    for line in (Path(__file__).parent / "programs" / "inequalities.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("status", "claim"), CASES)
def test_an_inequality_is_proven_refuted_or_undecided(status: str, claim: str) -> None:
    """Issue 26: a claim that is not true for all values is never VERIFIED. One that was undecided may be decided."""
    got = verify_math(claim)
    assert got.status == status, got
    assert status != "VERIFIED" or "counterexample" not in got.evidence
    if status == "ERROR":
        assert got.evidence["counterexample"], "a refuted inequality names the point at which it fails"
