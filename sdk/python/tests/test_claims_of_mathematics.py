"""Claims of mathematics in the notations that people write (issue 26.9 and 26.13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwed_new.engines.math import verify_math

LINES = (Path(__file__).parent / "programs" / "claims.txt").read_text().splitlines()
CLAIMS = [line.split(" ", 1) for line in LINES if not line.startswith("#")]
WANTED = {"V": "VERIFIED", "E": "ERROR", "?": "INCONCLUSIVE", "B": "BLOCKED"}


@pytest.mark.row("P-008", "Q-054")
@pytest.mark.parametrize(("kind", "claim"), CLAIMS)
def test_claims(kind: str, claim: str) -> None:
    verdict = verify_math(claim)
    assert verdict.status == WANTED[kind], verdict


def test_messages_name_what_is_not_clear() -> None:
    for claim, named in (("d/dx x^2 + 1 = 2x", "d/dx"), ("1 hour = 60 minutes", "'hour'"), ("2 + two = 4", "'two'"),
        ("lim_{x→0+} 1/x + 1 = oo", "limit(expression, x, point, +1)"), ("100 + 10% = 110", "a * (1 + b/100)"),
        ("\\foo{1} = 1", "\\")):
        assert named in verify_math(claim).message, claim
