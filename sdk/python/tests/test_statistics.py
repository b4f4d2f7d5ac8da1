"""Statistics are exact at any size (issue 26.2)."""

from __future__ import annotations

import statistics
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed_new.engines.stats import verify_stats

BIG = 10**28
STDEV = "x\n2\n4\n4\n4\n5\n5\n7\n9"  # the standard deviation is 2.1380899352993950774764278470380281724320113187307
HALF = "x\n1\n2\n3\n4\n5"  # 1.5811388300841896659994467722163592668597775696626


@pytest.mark.row("P-014")
@pytest.mark.parametrize(
    ("claim", "table", "status"),
    [
        (f"The sum of x is {BIG}", f"x\n{BIG + 1}", "ERROR"),
        (f"The sum of x is {BIG + 1}", f"x\n{BIG + 1}", "VERIFIED"),
        (f"The average x is {BIG + 1}", f"x\n{BIG}\n{BIG + 2}", "VERIFIED"),
        (f"The maximum x is {'9' * 41}", f"x\n{'9' * 41}", "VERIFIED"),
        (f"The maximum x is {'9' * 40}8", f"x\n{'9' * 41}", "ERROR"),
        (f"The sum of x is {'9' * 41}", f"x\n{'9' * 41}", "VERIFIED"),
        (f"The sum of x is {BIG}.5", f"x\n{BIG}.25\n0.25", "VERIFIED"),
        (f"The sum of x is {BIG}.6", f"x\n{BIG}.25\n0.25", "ERROR"),
        ("The sum of x is 10000000000000000000000000001 million", f"x\n{BIG}000000", "ERROR"),
        (f"The variance of x is {2 * 10**56}", f"x\n{BIG}\n{3 * BIG}", "VERIFIED"),
        (f"The sum of x is {2 * 10**99}", f"x\n{10**99}\n{10**99}", "VERIFIED"),
        (f"The sum of x is {2 * 10**99 + 1}", f"x\n{10**99}\n{10**99}", "ERROR"),
        ("The average x is 3.3333333333333333333333333333", "x\n3\n3\n4", "ERROR"),
        ("The average x is above 3.3333333333333333333333333333333333333", "x\n3\n3\n4", "VERIFIED"),
        ("The average x is below 3.3333333333333333333333333333333333334", "x\n3\n3\n4", "VERIFIED"),
        ("The average x is ≈ 3.33", "x\n3\n3\n4", "VERIFIED"),
        ("The average x is about 3.34", "x\n3\n3\n4", "ERROR"),
        ("The average x is 3.33 to 2 decimal places", "x\n3\n3\n4", "VERIFIED"),
        ("The average x is 3.3 ± 0.1", "x\n3\n3\n4", "VERIFIED"),
        ("The average x is 3.2 ± 0.1", "x\n3\n3\n4", "ERROR"),
        ("The average x is 0.5 to 0 decimal places", "x\n0\n1", "INCONCLUSIVE"),
        ("The average x is 1 to 0 decimal places", "x\n0\n1", "VERIFIED"),
        ("The average x is 0 to 0 decimal places", "x\n0\n1", "ERROR"),
        ("The standard deviation of x is 2", STDEV, "INCONCLUSIVE"),  # of a whole population
        ("The standard deviation of x is 2", HALF, "ERROR"),
        ("The standard deviation of x is 1.6", HALF, "ERROR"),
        ("The standard deviation of x is 1.58", HALF, "ERROR"),
        ("The standard deviation of x is ≈ 1.58", HALF, "VERIFIED"),
        ("The standard deviation of x is ≈ 1.59", HALF, "ERROR"),
        ("The standard deviation of x is above 1.5811388300841896659994467722163592668597", HALF, "VERIFIED"),
        ("The standard deviation of x is below 1.5811388300841896659994467722163592668598", HALF, "VERIFIED"),
        ("The standard deviation of x is at most -1", HALF, "ERROR"),
        ("The standard deviation of x is not 2", HALF, "VERIFIED"),
        ("The standard deviation of x is 1", "x\n1\n2\n3", "VERIFIED"),
        ("The standard deviation of x is 0", "x\n7\n7", "VERIFIED"),
        ("The standard deviation of x is 0.1", "x\n0.1\n0.2\n0.3", "VERIFIED"),
    ],
)
def test_equality_is_exact(claim: str, table: str, status: str) -> None:
    verdict = verify_stats(claim, csv_text=table)
    assert verdict.status == status, verdict
    verdict.to_json()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.decimals(-(10**30), 10**30, places=3), min_size=2, max_size=9))
def test_measures_agree_with_fractions(numbers: list[Decimal]) -> None:
    exact = [Fraction(n) for n in numbers]
    table = "x\n" + "\n".join(f"{n:f}" for n in numbers)
    mean, spread = statistics.mean(exact), statistics.variance(exact)
    for measure, value in (("average", mean), ("variance", spread), ("sum", sum(exact)),
        ("median", statistics.median(exact))):
        below, above = (int(value * 10**4 // 1) + d for d in (-1, 2))
        for claimed, status in ((below, "VERIFIED"), (above, "ERROR")):
            if abs(claimed) >= 10**41:
                continue
            claim = f"The {measure} of x is above {Decimal(claimed).scaleb(-4):f}"
            if abs(claimed) < 10**28:
                assert verify_stats(claim, csv_text=table).status == status, claim


TABLE = "n,salary\na,40000\nb,60000\nc,65000\n"
SPREAD = "x\n2\n4\n4\n4\n5\n5\n7\n9\n"


@pytest.mark.row("P-014")
@pytest.mark.parametrize(("status", "table", "claim"), [
    ("VERIFIED", TABLE, "The salary average is above 54999.99"), ("VERIFIED", TABLE, "The salary sum is 165000"),
    ("VERIFIED", SPREAD, "The population variance of x is 4"),
    ("VERIFIED", SPREAD, "The population standard deviation of x is 2"),
    ("ERROR", SPREAD, "The sample standard deviation of x is 2.1"),
    ("ERROR", TABLE, "The average salary is not above 50000"),
    ("ERROR", TABLE, "The average salary is zero"), ("VERIFIED", "x\n-1\n-3\n", "The mean of x is negative"),
    ("ERROR", "x\n-1\n-3\n", "The mean of x is positive"),
    ("INCONCLUSIVE", TABLE, "The average salary of men is 55000"),
    ("INCONCLUSIVE", TABLE, "The salary average of men is 55000"),
])  # fmt: skip
def test_other_forms_of_claims(status: str, table: str, claim: str) -> None:
    assert verify_stats(claim, csv_text=table).status == status
