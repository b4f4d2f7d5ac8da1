"""LiabilityGuard: are caps and limits computed right?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from qwed_new.money import amount
from qwed_new.verdict import Status, Verdict

ENGINE = "legal.liability"


class LiabilityGuard:
    """Exact decimals; a claim holds when it is the exact amount, or that amount rounded to cents."""

    def verify_cap(self, contract_value: Any, cap_percentage: Any, claimed_cap: Any) -> Verdict:
        """contract_value × cap_percentage / 100 = claimed_cap; the verdict has computed_cap and difference."""
        try:
            value, percentage = amount(contract_value), amount(cap_percentage)
        except ValueError as error:
            return _undecided(error)
        return _compare(value * percentage / 100, claimed_cap, f"{value} × {percentage} %")

    def verify_tiered_liability(self, tiers: Sequence[Mapping[str, Any]], claimed_total: Any) -> Verdict:
        """The sum of base × percentage / 100 over the tiers."""
        try:
            total = sum((amount(t["base"]) * amount(t["percentage"]) / 100 for t in tiers), Decimal(0))
        except (ValueError, KeyError, TypeError) as error:
            return _undecided(error)
        return _compare(total, claimed_total, f"the sum of {len(tiers)} tiers")

    def verify_indemnity_limit(self, annual_fee: Any, multiplier: Any, claimed_limit: Any) -> Verdict:
        """annual_fee × multiplier = claimed_limit."""
        try:
            return _compare(amount(annual_fee) * amount(multiplier), claimed_limit, f"{annual_fee} × {multiplier}")
        except ValueError as error:
            return _undecided(error)


def _undecided(error: Exception) -> Verdict:
    return Verdict(Status.INCONCLUSIVE, ENGINE, f"not decided: {error}", computed_cap=None, difference=None)


def _compare(computed: Decimal, claimed: Any, formula: str) -> Verdict:
    try:
        given = amount(claimed)
    except ValueError as error:
        return _undecided(error)
    if computed < 0 or given < 0:
        return Verdict(
            Status.ERROR, ENGINE, "amounts are not negative", {"formula": formula}, computed_cap=computed,
            difference=abs(computed - given)
        )
    evidence = {"formula": formula, "computed": computed, "claimed": given}
    fields = {"computed_cap": computed, "difference": abs(computed - given)}
    if given in (computed, computed.quantize(Decimal("0.01"), ROUND_HALF_UP)):
        return Verdict(Status.VERIFIED, ENGINE, f"{formula} = {given:f}", evidence, **fields)
    return Verdict(Status.ERROR, ENGINE, f"mismatch: {formula} = {computed:f}, not {given:f}", evidence, **fields)
