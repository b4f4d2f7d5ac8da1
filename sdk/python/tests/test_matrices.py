"""Claims about matrices (issue 26.13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwed_new.engines.consensus import verify_consensus
from qwed_new.engines.math_engine import verify_math, verify_math_expression

LINES = (Path(__file__).parent / "programs" / "matrices.txt").read_text().splitlines()[1:]
WANTED = {"T": "VERIFIED", "F": "ERROR", "?": "INCONCLUSIVE"}


@pytest.mark.row("Q-069", "P-008")
@pytest.mark.parametrize("line", LINES)
def test_matrices(line: str) -> None:
    verdict = verify_math(line[2:])
    assert verdict.status == WANTED[line[0]], verdict


def test_the_limits_of_matrices() -> None:
    assert verify_math("[[" + ",".join("1" * 9) + "]] = [[1]]").status == "BLOCKED"
    assert verify_math("[[2,1],[1,1]]^16 = [[1,0],[0,1]]").status == "ERROR"


def test_other_questions_about_matrices_are_not_decided() -> None:
    assert verify_math_expression("[[1,2],[3,4]]", "-2", operation="evaluate").status == "INCONCLUSIVE"
    assert verify_consensus("det([[1,2],[3,4]]) = -2", mode="high").status == "INCONCLUSIVE"
