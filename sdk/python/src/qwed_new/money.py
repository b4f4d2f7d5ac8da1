"""Money: exact decimals, currencies with their minor units, amounts in texts."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

# ISO 4217, active codes of currencies, with two minor digits unless listed below.
CURRENCIES = frozenset(
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP "
    "CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF "
    "IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD "
    "MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB "
    "RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD "
    "UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG".split()
)
_MINOR = {
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
}

_AMOUNT = re.compile(
    r"(?:(?<!\s)|(?=\S))\(?-?\s*+(?:[$€£¥₹]|USD|EUR|GBP|INR|Rs\.?)?\s*+-?(\d{1,3}(?:,\d{2,3})+|\d+)(\.\d+)?\s*"
    r"(?:USD|EUR|GBP|INR|dollars|rupees|euros)?\)?",
    re.I,
)
_SIGNS = re.compile(r"[$€£¥₹]|\b(?:USD|EUR|GBP|INR|JPY|CHF)\b|Rs\.?", re.I)
# Groups of three digits, or of two before the last three as in India. `1,5` has no groups and may mean one and a half.
_GROUPED = re.compile(r"[-+]?\(?[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d+)?\)?")


def minor_digits(currency: str) -> int:
    """Return the number of digits of the minor unit of a currency."""
    return _MINOR.get(currency, 2)


def amount(value: Any) -> Decimal:
    """Return the exact decimal of a number or a text such as `$1,234.56`. Raise ValueError for anything else, NaN and
    infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(f"{value!r} is not an amount"[:80])
    text = str(value)
    if len(text) > 100:
        raise ValueError("an amount has more than 100 characters")
    if isinstance(value, str):
        if len(_SIGNS.findall(text)) > 1:
            raise ValueError(f"{value!r} has two currencies"[:80])
        text = _SIGNS.sub("", text).strip()
        text = re.sub(r"^([-+(]+)\s+|\s+(\))$", r"\1\2", text)
        if "," in text:
            if not _GROUPED.fullmatch(text):
                raise ValueError(f"{value!r} may be a decimal comma: write a decimal point"[:100])
            text = text.replace(",", "")
        if "_" in text or not text.isascii():  # other digits, such as full-width ones
            raise ValueError(f"{value!r} is not an amount"[:80])
        if text.startswith("(") and text.endswith(")"):
            text = "-" + text[1:-1]
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{value!r} is not an amount"[:80]) from None
    if not number.is_finite() or abs(number.adjusted()) > 100:
        raise ValueError(f"{value!r} is not an amount"[:80])
    return number


def amounts_in(text: str) -> list[Decimal]:
    """The numbers of a text with their sign, percentages left out, in their order; one in parentheses is negative."""
    found = []
    for match in _AMOUNT.finditer(text[:100_000]):
        if not text[match.end() :].lstrip().startswith(("%", "percent", "per cent")):
            negative = (
                match[0].lstrip("( ").startswith("-")
                or bool(re.match(r"[^\d(]*-", match[0]))
                or (match[0].startswith("(") and match[0].endswith(")"))
            )
            found.append(Decimal(("-" if negative else "") + match[1].replace(",", "") + (match[2] or "")))
    return found
