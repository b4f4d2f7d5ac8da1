"""Notations of textbooks, and what the messages about bad input name (issue 26.13)."""

from __future__ import annotations

import pytest

from qwed_new.engines.image import verify_image
from qwed_new.engines.math_engine import verify_math


@pytest.mark.row("P-008")
@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("２＋２＝４", "VERIFIED"), ("２＋２＝５", "ERROR"), ("（１＋２）＊３ ＝ ９", "VERIFIED"),
        ("2 － 1 ＝ 1", "VERIFIED"),
        ("x² ＝ x*x", "VERIFIED"), ("3 ＜ 5", "VERIFIED"), ("3 ＞ 5", "ERROR"),
        ("15% of 200 = 30", "VERIFIED"), ("15% of 200 = 31", "ERROR"), ("50% of 10 + 5 = 10", "VERIFIED"),
        ("7.5 % of 1000 = 75", "VERIFIED"), ("100% of x = x", "VERIFIED"), ("10% of (20 + 30) = 5", "VERIFIED"),
        ("lim x->0 sin(x)/x = 1", "VERIFIED"), ("lim_{x->0} sin(x)/x = 1", "VERIFIED"),
        ("lim_(x→0) sin(x)/x = 2", "ERROR"), ("lim x→∞ 1/x = 0", "VERIFIED"), ("lim x->2 (x^2 + 1) = 5", "VERIFIED"),
        ("lim x->0 x + 1 = 1", "INCONCLUSIVE"),
        ("∫ 2x dx = x^2", "VERIFIED"), ("∫ 2x dx = x^2 + C", "VERIFIED"), ("∫ 2x dx = x^3", "ERROR"),
        ("∫_0^1 x^2 dx = 1/3", "VERIFIED"), ("∫_0^1 x^2 dx = 1/2", "ERROR"), ("∫_{0}^{2} x dx = 2", "VERIFIED"),
        ("∫ x^2 = x^3/3", "INCONCLUSIVE"), ("∫ x, x) + integral(x dx = x^2", "INCONCLUSIVE"),
        ("lim x->1 x != 1", "INCONCLUSIVE"),  # was read as the limit of x!
        ("∑_{k=1}^{10} k = 55", "VERIFIED"), ("∑_{k=1}^{10} k = 54", "ERROR"), ("∑_{k=1}^3 (k + 1) = 9", "VERIFIED"),
        ("∑_{k=1}^{n} k = n*(n+1)/2", "VERIFIED"), ("∑_{k=1}^{3} k + 1 = 7", "INCONCLUSIVE"),
        ("∑_{k=1}^{3} k mod 2 = 0", "INCONCLUSIVE"), ("∑_{k=1}^{3} k != 9", "INCONCLUSIVE"),
        ("∑_{k=1}^{3} k) + (k = 6", "INCONCLUSIVE"), ("∑_{k=1}^{3} k, k = 6", "INCONCLUSIVE"),
        ("1,000 + 1 = 1,001", "VERIFIED"), ("1,000,000 / 1,000 = 1,001", "ERROR"),
        ("(1,500 + 500) * 2 = 4,000", "VERIFIED"),
        ("1,00 = 100", "INCONCLUSIVE"), ("0,123 = 123", "INCONCLUSIVE"), ("max(1,000) = 1000", "ERROR"),
        ("gcd(1,000, 10) = 10", "ERROR"),
        ("lim x->0- 1/x = -oo", "VERIFIED"), ("lim x->0+ 1/x = -oo", "ERROR"),
        ("lim_{x->0^+} 1/x = oo", "VERIFIED"), ("lim x->0 -x = 0", "VERIFIED"), ("2≦3", "VERIFIED"),
        ("3⩾2", "VERIFIED"),
        ("2✕3=6", "VERIFIED"), ("5–3=2", "VERIFIED"), ("5 percent of 100 = 5", "VERIFIED"),
        ("5 percent of 100 = 6", "ERROR"),
        ("d/dx x^2 + 3x = 2x + 3", "INCONCLUSIVE"), ("d/dx(x^2) = 2x", "VERIFIED"),
    ],
)  # fmt: skip
def test_notations(claim: str, status: str) -> None:
    verdict = verify_math(claim)
    assert verdict.status == status, verdict


@pytest.mark.parametrize(("claim", "word"),
    [("2+2=4\0", "without U+0000"), ("d/dt t^2 + t = 2t + 1", "diff(expression, t)"), ("dy/dx = 2", "diff("),
        ("x = 2 <=> 2x = 4", "verify_logic_statement"), ("T.f = 1", "T_f"), ("7 ≡ 1", "mod("),
        ("∑_{k=1}^{3} k + 1 = 7", "sum("), ("∏_{k=1}^{4} k + 1 = 25", "product("), ("d/dx (x)(x) = 2x", "diff("),
        ("∫ x = 1", "integral("), ("lim x->0 x + 1 = 1", "limit(")])
def test_messages_name_what_to_write(claim: str, word: str) -> None:
    assert word in verify_math(claim).message


@pytest.mark.parametrize("text", ["%%%", "abc", "data:image/png;base64,AAAA", "AA AA", "AAAA\n"])
def test_bad_base64_is_named(text: str) -> None:
    verdict = verify_image(claim="This is a PNG image", image_base64=text)
    assert verdict.status == "INCONCLUSIVE" and "base64" in verdict.message
