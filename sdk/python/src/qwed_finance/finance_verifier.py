"""FinanceVerifier: are amounts, payments and rates computed right?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, DecimalException, localcontext
from itertools import pairwise
from typing import Any

from qwed_finance.scenarios import compute, payment
from qwed_new.money import amount
from qwed_new.verdict import Status, Verdict

ENGINE = "finance"
COMPOUNDING = {
    "annual": 1,
    "annually": 1,
    "yearly": 1,
    "semi-annual": 2,
    "semiannual": 2,
    "half-yearly": 2,
    "quarterly": 4,
    "monthly": 12,
    "weekly": 52,
    "daily": 365,
}
MAX_PERIODS = 10_000


class FinanceVerifier:
    """Compute with 60 digits and compare amounts rounded half up to `precision` decimals, without a tolerance.

    Each verdict has computed_value, llm_value, difference and formula_used. Rates are fractions: 0.06 is 6 %.
    """

    def __init__(self, precision: int = 2) -> None:
        if not 0 <= precision <= 10:
            raise ValueError("precision is from 0 to 10")
        self.precision = precision

    def verify_npv(self, cashflows: Sequence[Any], rate: Any, llm_output: Any) -> Verdict:
        """Net present value: Σ CFₜ / (1+r)ᵗ, t from 0."""
        return self._check(
            lambda: _npv([amount(c) for c in _bounded(cashflows)], amount(rate)), llm_output, "NPV = Σ CF_t / (1+r)^t")

    def verify_irr(self, cashflows: Sequence[Any], llm_output: Any, tolerance: Any = "0.0001") -> Verdict:
        """Internal rate of return: the only rate above −100 % at which the net present value is zero; `14.49%` or
        `0.1449`."""
        try:
            flows, claimed, allowed = [amount(c) for c in _bounded(cashflows)], _rate(llm_output), amount(tolerance)
        except ValueError as error:
            return _undecided(error, llm_output)
        if not 0 <= allowed <= Decimal("0.01"):
            return _undecided(ValueError("the tolerance is from 0 to 0.01, a percentage point"), llm_output)
        changes = sum(1 for a, b in pairwise(f for f in flows if f) if (a < 0) != (b < 0))
        if changes != 1:
            word = "no rate of return exists" if changes == 0 else "more than one rate of return may exist"
            return Verdict(
                Status.INCONCLUSIVE,
                ENGINE,
                f"{word}: the cash flows change sign {changes} times",
                computed_value=None,
                llm_value=llm_output,
                difference=None,
            )
        irr = _bisect(flows)
        difference = abs(irr - claimed)
        fields = {
            "computed_value": f"{irr * 100:.4f}%", "llm_value": llm_output, "difference": difference,
            "formula_used": "NPV(r) = 0"}
        evidence = {
            "method": "bisection with 60 digits; one change of sign makes the root the only one", "tolerance": allowed}
        if difference <= allowed:
            return Verdict(Status.VERIFIED, ENGINE, f"the rate of return is {irr * 100:.4f} %", evidence, **fields)
        return Verdict(
            Status.ERROR, ENGINE, f"the rate of return is {irr * 100:.4f} %, not {claimed * 100:.4f} %", evidence,
            **fields)

    def verify_monthly_payment(self, principal: Any, annual_rate: Any, months: int, llm_output: Any) -> Verdict:
        """Annuity: P·r(1+r)ⁿ / ((1+r)ⁿ − 1), r a twelfth of the annual rate."""
        return self._check(
            lambda: payment(amount(principal), amount(annual_rate), _periods(months)), llm_output,
            "PMT = P·r(1+r)^n / ((1+r)^n − 1)"
        )

    def verify_total_interest(self, principal: Any, annual_rate: Any, months: int, llm_output: Any) -> Verdict:
        """Payments less principal; both with the exact payment and with the payment rounded to cents."""

        def exact() -> Decimal:
            return payment(amount(principal), amount(annual_rate), _periods(months)) * _periods(months) - amount(
                principal)

        verdict = self._check(exact, llm_output, "total interest = PMT·n − P")
        if verdict.status != "ERROR":
            return verdict
        rounded = self._check(
            lambda: self._round(payment(amount(principal), amount(annual_rate), months)) * months - amount(principal),
            llm_output,
            "total interest = round(PMT)·n − P",
        )
        return rounded if rounded.verified else verdict

    def verify_compound_interest(
        self, principal: Any, rate: Any, periods: Any, llm_output: Any, compounding: str = "annual") -> Verdict:
        """Final amount: P(1 + r/n)^(nt), t in years."""
        n = COMPOUNDING.get(compounding.lower()) if isinstance(compounding, str) else None
        if n is None:
            return Verdict(
                Status.INCONCLUSIVE,
                ENGINE,
                f"the compounding {compounding!r} is not one of {', '.join(COMPOUNDING)}",
                computed_value=None,
                llm_value=llm_output,
            )
        return self._check(
            lambda: _compound(amount(principal), amount(rate), amount(periods), n), llm_output,
            f"A = P(1 + r/{n})^({n}t)")

    def verify_simple_interest(self, principal: Any, rate: Any, years: Any, llm_output: Any) -> Verdict:
        """Interest: P·r·t."""
        return self._check(lambda: amount(principal) * amount(rate) * amount(years), llm_output, "I = P·r·t")

    def verify_banking_compliance(self, scenario: str, llm_output: str) -> Verdict:
        """Decide whether the last amount of llm_output is the result of the scenario's figures.

        Scenarios are read by a small grammar: loan payments, simple and compound interest, deposits with additional
        rates, premiums as a share of an amount. A scenario that it cannot parse completely is INCONCLUSIVE.
        """
        try:
            found = compute(scenario, llm_output)
        except (ValueError, DecimalException) as error:
            return _undecided(error, llm_output)
        return self._check(lambda: found.value, found.claimed, found.formula, found.inputs)

    def add_money(self, *amounts: Any) -> str:
        """The exact sum, as `$1,234.56`."""
        return self._format(sum((amount(a) for a in amounts), Decimal(0)))

    def subtract_money(self, a: Any, b: Any) -> str:
        """The exact difference."""
        return self._format(amount(a) - amount(b))

    def multiply_money(self, value: Any, factor: Any) -> str:
        """The exact product, rounded half up."""
        return self._format(amount(value) * amount(factor))

    def _round(self, value: Decimal) -> Decimal:
        return value.quantize(Decimal(1).scaleb(-self.precision), ROUND_HALF_UP)

    def _format(self, value: Decimal) -> str:
        rounded = self._round(value)
        return f"{'-' if rounded < 0 else ''}${abs(rounded):,.{self.precision}f}"

    def _check(
        self, compute_value: Callable[[], Decimal], claimed: Any, formula: str,
        inputs: dict[str, Any] | None = None) -> Verdict:
        try:
            with localcontext() as context:
                context.prec = 60
                computed = self._round(compute_value())
                given = amount(claimed)
        except (ValueError, DecimalException, ZeroDivisionError, OverflowError) as error:
            return _undecided(error, claimed)
        fields = {
            "computed_value": self._format(computed),
            "llm_value": claimed,
            "difference": abs(given - computed),
            "formula_used": formula,
        }
        evidence = {
            "formula": formula,
            "computed": computed,
            "claimed": given,
            "rounding": f"half up to {self.precision} decimals",
            **(inputs or {}),
        }
        if given == computed:
            return Verdict(Status.VERIFIED, ENGINE, f"{formula} = {self._format(computed)}", evidence, **fields)
        return Verdict(Status.ERROR, ENGINE, f"{formula} = {self._format(computed)}, not {given:f}", evidence, **fields)


def _undecided(error: Exception, claimed: Any) -> Verdict:
    return Verdict(
        Status.INCONCLUSIVE,
        ENGINE,
        f"not decided: {error or type(error).__name__}",
        computed_value=None,
        llm_value=claimed,
        difference=None,
    )


def _bounded(flows: Sequence[Any]) -> Sequence[Any]:
    if isinstance(flows, str) or not 0 < len(flows) <= MAX_PERIODS:
        raise ValueError(f"cash flows are from 1 to {MAX_PERIODS} amounts")
    return flows


def _periods(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not 0 < n <= MAX_PERIODS:
        raise ValueError(f"periods are a whole number from 1 to {MAX_PERIODS}")
    return n


def _rate(text: Any) -> Decimal:
    if isinstance(text, str) and (match := re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(?:%|percent)\s*", text)):
        return Decimal(match[1]) / 100
    return amount(text)


def _npv(flows: list[Decimal], rate: Decimal) -> Decimal:
    if rate <= -1:
        raise ValueError("a rate is more than −100 %")
    total, factor = Decimal(0), Decimal(1)
    for flow in flows:
        total += flow / factor
        factor *= 1 + rate
    return total


def _bisect(flows: list[Decimal]) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        low, high = Decimal("-0.999999"), Decimal(1)
        sign = _npv(flows, low) > 0
        while (_npv(flows, high) > 0) == sign and high < 10**9:
            high *= 10
        for _ in range(200):
            middle = (low + high) / 2
            if (_npv(flows, middle) > 0) == sign:
                low = middle
            else:
                high = middle
        return +((low + high) / 2).quantize(Decimal("1e-20"))


def _compound(principal: Decimal, rate: Decimal, years: Decimal, n: int) -> Decimal:
    if n * years > 100 * MAX_PERIODS or rate <= -n:
        raise ValueError("too many periods, or a rate below −100 %")
    return principal * (1 + rate / n) ** (n * years)
