"""Equalities over the real numbers are judged only where every part is real (issue 26.9)."""

from __future__ import annotations

import pytest

from qwed_new.engines.math_engine import verify_math


@pytest.mark.row("Q-069")
@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("sqrt(x)*sqrt(y) = sqrt(x*y)", "VERIFIED"), ("sqrt(x*y) = sqrt(x)*sqrt(y)", "VERIFIED"),
        ("sqrt(x)/sqrt(y) = sqrt(x/y)", "VERIFIED"), ("√x * √y = √(x*y)", "VERIFIED"),
        ("x^(1/2) * y^(1/2) = (x*y)^(1/2)", "VERIFIED"), ("sqrt(x)^2 = x", "VERIFIED"),
        ("sqrt(x)*sqrt(x) = x", "VERIFIED"), ("sqrt(x)*sqrt(x) = -x", "ERROR"), ("ln(x) + ln(y) = ln(x*y)", "VERIFIED"),
        ("ln(x*y) = ln(x) + ln(y)", "VERIFIED"), ("ln(x/y) = ln(x) - ln(y)", "VERIFIED"),
        ("ln(x^2) = 2*ln(x)", "VERIFIED"), ("exp(ln(x)) = x", "VERIFIED"), ("sqrt(x^2) = x", "ERROR"),
        ("sqrt(x^2) = abs(x)", "VERIFIED"),
        ("sqrt(x)*sqrt(y) = sqrt(x+y)", "ERROR"), ("sqrt(x) + sqrt(y) = sqrt(x+y)", "ERROR"),
        ("ln(x)*ln(y) = ln(x*y)", "ERROR"), ("ln(x+y) = ln(x) + ln(y)", "ERROR"),
        ("sqrt(x*y) = sqrt(x)*sqrt(-y)", "INCONCLUSIVE"),
        ("sqrt(-x)*sqrt(-y) = sqrt(x*y)", "INCONCLUSIVE"), ("sqrt(x)*sqrt(y)*sqrt(z) = sqrt(x*y*z)", "VERIFIED"),
        ("sqrt(-1)*sqrt(-1) = -1", "VERIFIED"), ("i*i = -1", "VERIFIED"),
        ("integral(cbrt(x),x,-1,1) = 0", "VERIFIED"), ("cbrt(x^3) = x", "VERIFIED"), ("cbrt(x^3) = abs(x)", "ERROR"),
        ("cbrt(x^2) = cbrt(x)^2", "VERIFIED"), ("diff(cbrt(x),x) = 1/(3*cbrt(x)^2)", "VERIFIED"),
        ("asin(x) + acos(x) = pi/2", "VERIFIED"), ("integral(cbrt(x),x) = 3/4*x*cbrt(x)", "VERIFIED"),
        ("sqrt(x)/sqrt(x) = 1", "VERIFIED"), ("x/sqrt(x) = sqrt(x)", "VERIFIED"), ("sqrt(x) = x", "ERROR"),
    ],
)  # fmt: skip
def test_roots_and_logarithms(claim: str, status: str) -> None:
    verdict = verify_math(claim)
    assert verdict.status == status, verdict
