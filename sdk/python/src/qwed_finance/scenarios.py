"""Banking scenarios in words: figures read by a small grammar, the amount that they make."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

from qwed_new.money import amounts_in

MAX_TEXT = 20_000
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent\b|per cent\b)")
_EXTRA = re.compile(
    r"(?:additional|extra|bonus|more|plus)\s+(?:interest\s+(?:rate\s+)?(?:of\s+)?)?(\d+(?:\.\d+)?)\s*(?:%|percent)|(\d+(?:\.\d+)?)\s*(?:%|percent)\s*(?:additional|extra|bonus|more)",
    re.I,
)
_YEARS = re.compile(r"(\d+(?:\.\d+)?)[\s-]*(?:years?|yrs?)\b", re.I)
_MONTHS = re.compile(r"(\d+)[\s-]*(?:months?)\b", re.I)
_COMPOUNDING = {
    "semi-annual": 2,
    "semiannual": 2,
    "half-yearly": 2,
    "half yearly": 2,
    "quarterly": 4,
    "monthly": 12,
    "daily": 365,
    "annually": 1,
    "yearly": 1,
    "annual": 1,
}


@dataclass(slots=True)
class Scenario:
    """What a scenario's figures make, and what was claimed."""

    value: Decimal
    claimed: Decimal
    formula: str
    inputs: dict[str, Any] = field(default_factory=dict)


def compute(scenario: str, output: str) -> Scenario:
    """Read and compute a scenario; ValueError when it is not read whole."""
    if not isinstance(scenario, str) or not isinstance(output, str) or max(len(scenario), len(output)) > MAX_TEXT:
        raise ValueError("scenario and llm_output are texts of at most 20000 characters")
    text = " ".join(scenario.lower().split())
    bare = _MONTHS.sub(" ", _YEARS.sub(" ", _PERCENT.sub(" ", re.sub(r"\b(?:age[d]?|aged)\s+\d+|\b\d+[- ]year[- ]old", " ", text))))
    money = [m for m in amounts_in(bare) if m > 0]
    if len(money) != 1:
        raise ValueError(f"the scenario names {len(money)} amounts where one is read")
    rates = [Decimal(r) / 100 for r in _PERCENT.findall(text)]
    extra = [Decimal(a or b) / 100 for a, b in _EXTRA.findall(text)]
    if not rates or len(rates) - len(extra) != 1:
        raise ValueError("the scenario names no single rate")
    total = sum(rates, Decimal(0))
    claims = amounts_in(_PERCENT.sub(" ", _YEARS.sub(" ", _MONTHS.sub(" ", output))))
    if not claims:
        raise ValueError("the answer names no amount")
    years = _duration(text)
    value, formula = _value(text, money[0], total, years)
    inputs = {"principal": money[0], "rate": total, "additional": extra, "years": years}
    return Scenario(value, claims[-1], formula, inputs)


def _duration(text: str) -> Decimal | None:
    years, months = _YEARS.findall(re.sub(r"\b\d+[- ]year[- ]old", " ", text)), _MONTHS.findall(text)
    if len(years) > 1 or len(months) > 1:
        raise ValueError("the scenario names more than one duration")
    if not years and not months:
        return None
    return Decimal(years[0] if years else 0) + Decimal(months[0] if months else 0) / 12


def _value(text: str, principal: Decimal, rate: Decimal, years: Decimal | None) -> tuple[Decimal, str]:
    from qwed_finance.finance_verifier import payment

    with localcontext() as context:
        context.prec = 60
        if re.search(r"\b(?:emi|monthly (?:loan |mortgage )?(?:payment|instal?lment))\b", text):
            if years is None:
                raise ValueError("the scenario names no duration")
            return payment(principal, rate, int((years * 12).to_integral_value())), "PMT = P·r(1+r)^n / ((1+r)^n − 1)"
        if "compound" in text or "maturity" in text or "future value" in text:
            if years is None or ("simple" in text):
                raise ValueError("the scenario names no duration, or two kinds of interest")
            n = next((v for k, v in _COMPOUNDING.items() if k in text), None)
            if n is None and "compound" in text:
                n = 1
            if n is None:
                raise ValueError("how interest is compounded is not said")
            final = principal * (1 + rate / n) ** (n * years)
            if re.search(r"\binterest (?:earned|only|amount|accrued)\b|\bhow much interest\b", text):
                return final - principal, f"interest = P(1 + r/{n})^({n}t) − P"
            return final, f"A = P(1 + r/{n})^({n}t)"
        if "premium" in text or "fee" in text or "commission" in text or "discount" in text or re.search(r"\btax\b", text):
            if years is not None:
                raise ValueError("a share of an amount has no duration")
            return principal * rate, "share = amount × rate"
        if "interest" in text:
            return principal * rate * (years if years is not None else 1), "I = P·r·t"
    raise ValueError("the kind of calculation is not understood")
