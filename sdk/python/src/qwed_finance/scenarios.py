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
    r"(?:additional|extra|bonus|more|plus)\s+(?:interest\s+(?:rate\s+)?(?:of\s+)?)?(\d+(?:\.\d+)?)\s*(?:%|percent)"
    r"|(\d+(?:\.\d+)?)\s*(?:%|percent)\s*(?:additional|extra|bonus|more)",
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

# All words that a scenario may consist of. Any other word may change the meaning of the computation.
_KNOWN = frozenset(
    "a an the of on in at for with to is are be and by from over as what which how much it its this that their his "
    "her he she they there who loan loans mortgage borrow borrows borrowed borrower principal amount sum deposit "
    "deposits deposited deposit fixed fd account savings bank customer client person citizen senior citizens invest "
    "invests invested investment places placed puts rate interest annual annually yearly year years per annum pa "
    "additional extra bonus plus more gets receives offers offered simple compound compounded compounding quarterly "
    "monthly daily semi-annual semiannual half-yearly half yearly weekly payment installment instalment emi term "
    "tenure repaid repay premium insurance insured policy commission fee charge charged tax discount value future "
    "maturity matures mature grows grow earned earn earns accrued final balance total calculate compute usd eur gbp "
    "inr rs dollars rupees euros percent aged age old".split()
)
_DENIED = re.compile(
    r"\b(?:not|no|never|wrong|incorrect|isn't|false|instead|rather|less|waived|without|either|or|about|approximately"
    r"|around|roughly|over|under|almost)\b|n't\b",
    re.I,
)
_SCALED = re.compile(r"\d\s*(?:k|m|bn|thousand|lakhs?|lacs?|crores?|million|billion|mn)\b", re.I)
_CURRENCIES = {
    "$": "$",
    "usd": "$",
    "dollars": "$",
    "€": "€",
    "eur": "€",
    "euros": "€",
    "£": "£",
    "gbp": "£",
    "₹": "₹",
    "inr": "₹",
    "rs": "₹",
    "rupees": "₹",
    "¥": "¥",
}


@dataclass(slots=True)
class Scenario:
    """The computed result of a scenario, and the claimed one."""

    value: Decimal
    claimed: Decimal
    formula: str
    inputs: dict[str, Any] = field(default_factory=dict)


def compute(scenario: str, output: str) -> Scenario:
    """Read and compute a scenario; ValueError when it is not read whole."""
    if not isinstance(scenario, str) or not isinstance(output, str) or max(len(scenario), len(output)) > MAX_TEXT:
        raise ValueError("scenario and llm_output are texts of at most 20000 characters")
    text = " ".join(scenario.lower().split())
    _read_whole(text, output)
    bare = _MONTHS.sub(
        " ", _YEARS.sub(" ", _PERCENT.sub(" ", re.sub(r"\b(?:age[d]?|aged)\s+\d+|\b\d+[- ]year[- ]old", " ", text))))
    money = [m for m in amounts_in(bare) if m > 0]
    if len(money) != 1:
        raise ValueError(f"the scenario names {len(money)} amounts where one is read")
    rates = [Decimal(r) / 100 for r in _PERCENT.findall(text)]
    extra = [Decimal(a or b) / 100 for a, b in _EXTRA.findall(text)]
    if not rates or len(rates) - len(extra) != 1:
        raise ValueError("the scenario names no single rate")
    total = sum(rates, Decimal(0))
    claims = {c for c in amounts_in(_PERCENT.sub(" ", _YEARS.sub(" ", _MONTHS.sub(" ", output)))) if c != money[0]}
    if len(claims) != 1:
        raise ValueError("the answer names no amount" if not claims else "the answer names several amounts")
    years = _duration(text)
    value, formula = _value(text, money[0], total, years)
    inputs = {"principal": money[0], "rate": total, "additional": extra, "years": years}
    return Scenario(value, claims.pop(), formula, inputs)


def _read_whole(text: str, output: str) -> None:
    """ValueError for words that may change what is computed, amounts in thousands, and two currencies."""
    unknown = sorted({w for w in re.findall(r"[^\W\d_][^\W\d_'’-]*", text) if w.strip("-'") not in _KNOWN})
    if unknown:
        raise ValueError(f"the scenario is not read whole: {', '.join(unknown[:5])}")
    if re.search(
        r"\b(?:daily|weekly|monthly|quarterly|annual|annually|yearly)\s+(?:deposit|invest|place|sum|amount)", text):
        raise ValueError("deposits that are made again and again are not computed")
    if _SCALED.search(text) or _SCALED.search(output):
        raise ValueError("amounts are read as figures: write 1000000 for a million")
    if _DENIED.search(output):
        raise ValueError("the answer denies or qualifies something")
    currencies = [
        {sign for word, sign in _CURRENCIES.items() if re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", t.lower())}
        for t in (text, output)
    ]
    if any(len(c) > 1 for c in currencies) or (all(currencies) and currencies[0] != currencies[1]):
        raise ValueError("there are two currencies")


def _duration(text: str) -> Decimal | None:
    years, months = _YEARS.findall(re.sub(r"\b\d+[- ]year[- ]old", " ", text)), _MONTHS.findall(text)
    if len(years) > 1 or len(months) > 1:
        raise ValueError("the scenario names more than one duration")
    if not years and not months:
        return None
    return Decimal(years[0] if years else 0) + Decimal(months[0] if months else 0) / 12


def _value(text: str, principal: Decimal, rate: Decimal, years: Decimal | None) -> tuple[Decimal, str]:
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
            whole = re.search(r"\b(?:grows?|matur\w+|future value|final|balance|total)\b", text)
            if (
                "compound interest" in text
                and not whole
                and not re.search(r"\binterest (?:earned|amount|accrued)\b|\bhow much interest\b", text)
            ):
                raise ValueError("whether the interest is asked for or the final amount is not said")
            if re.search(r"\binterest (?:earned|only|amount|accrued)\b|\bhow much interest\b", text):
                return final - principal, f"interest = P(1 + r/{n})^({n}t) − P"
            return final, f"A = P(1 + r/{n})^({n}t)"
        if "premium" in text or "fee" in text or "commission" in text or "discount" in text or re.search(
            r"\btax\b", text):
            if years is not None:
                raise ValueError("a share of an amount has no duration")
            return principal * rate, "share = amount × rate"
        if "interest" in text:
            if years is None and not re.search(r"\b(?:annual|yearly|per (?:year|annum))\b", text):
                raise ValueError("the scenario names no duration")
            if years not in (None, 1) and "simple" not in text:
                raise ValueError("whether interest is simple or compounded is not said")
            return principal * rate * (years if years is not None else 1), "I = P·r·t"
    raise ValueError("the kind of calculation is not understood")


def payment(principal: Decimal, annual_rate: Decimal, months: int) -> Decimal:
    """The payment of an annuity."""
    if principal <= 0 or annual_rate < 0:
        raise ValueError("a principal is positive, and a rate is not negative")
    rate = annual_rate / 12
    if rate == 0:
        return principal / months
    factor = (1 + rate) ** months
    return principal * rate * factor / (factor - 1)
