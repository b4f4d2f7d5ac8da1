"""ISOGuard: is a payment message what ISO 20022 wants?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from stdnum import bic, iban, lei

from qwed_new.money import CURRENCIES, amount, minor_digits
from qwed_new.verdict import Status, Verdict

ENGINE = "finance.iso20022"
MESSAGES = {
    "pacs.008": ("MsgId", "CreDtTm", "NbOfTxs"),
    "pain.001": ("MsgId", "CreDtTm", "NbOfTxs"),
    "pacs.009": ("MsgId", "CreDtTm", "NbOfTxs"),
}
MAX_VALUES = 100_000

_TEXT35 = re.compile(r"[A-Za-z0-9/?:().,'+ \-]{1,35}")
_CONTAINERS = ("GrpHdr", "FIToFICstmrCdtTrf", "CstmrCdtTrfInitn", "Document", "FICdtTrf")


class ISOGuard:
    """Checks the header of pacs.008, pacs.009 and pain.001 and, at any depth, identifiers and amounts by their own
    rules.

    IBAN, BIC and LEI by their check digits (python-stdnum), currencies and their minor digits by ISO 4217, counts and
    control sums by addition. It does not validate against the full XML schema, which the verdict states.
    """

    def verify_payment_message(self, message: Mapping[str, Any], msg_type: str = "pacs.008") -> Verdict:
        """Judge one message; the verdict has error, path, issues, msg_type and standard."""
        kind = ".".join(str(msg_type).split(".")[:2])
        fields: dict[str, Any] = {"standard": "ISO 20022", "msg_type": msg_type}
        if kind not in MESSAGES:
            text = f"Unsupported message type: {msg_type}"
            return Verdict(Status.UNKNOWN, ENGINE, text, error=text, path=[], issues=[text], **fields)
        if not isinstance(message, Mapping):
            return Verdict(
                Status.ERROR, ENGINE, "the message is not an object", error="not an object", path=[],
                issues=["not an object"], **fields
            )
        issues = [*_header(message, kind), *_values(message), *_sums(message)]
        evidence = {
            "checked": "header, identifiers, amounts, sums",
            "not_decided": "the full XML schema and the rules of a scheme"}
        if issues:
            error = f"Schema Violation: {issues[0][1]}"
            all_issues = [f"{path}: {text}" if path else text for path, text in issues]
            return Verdict(
                Status.ERROR,
                ENGINE,
                "; ".join(all_issues[:10]),
                evidence,
                error=error,
                path=issues[0][0].split(".") if issues[0][0] else [],
                issues=all_issues,
                **fields,
            )
        return Verdict(
            Status.VERIFIED,
            ENGINE,
            f"the message is well formed as {msg_type}, as far as checked",
            evidence,
            error="",
            path=[],
            issues=[],
            **fields,
        )


def _group(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The header, whether it is written flat or in its containers."""
    found = message
    for _ in range(4):
        inner = next((found[c] for c in _CONTAINERS if isinstance(found.get(c), Mapping)), None)
        if inner is None:
            break
        found = inner
    return found


def _header(message: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    header = _group(message)
    issues = [("", f"'{name}' is a required property") for name in MESSAGES[kind] if header.get(name) in (None, "")]
    identifier, created, count = header.get("MsgId"), header.get("CreDtTm"), header.get("NbOfTxs")
    if identifier not in (None, "") and not (
        isinstance(identifier, str) and _TEXT35.fullmatch(identifier) and identifier.strip() == identifier
    ):
        issues.append(("MsgId", "is a text of 1 to 35 characters of the SWIFT set"))
    if created not in (None, "") and not _is_moment(created):
        issues.append(("CreDtTm", "is a date and time as ISO 8601 writes it"))
    if count not in (None, "") and not (not isinstance(count, bool) and re.fullmatch(r"[1-9]\d{0,14}", str(count))):
        issues.append(("NbOfTxs", "is a whole number from 1 on"))
    return issues


def _is_moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and "T" in value and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _values(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    issues: list[tuple[str, str]] = []
    for count, (path, key, value) in enumerate(_walk(message)):
        if count >= MAX_VALUES:
            return [*issues, ("", "the message has too many values")]
        if key == "IBAN" and not (isinstance(value, str) and iban.is_valid(value)):
            issues.append((path, "is no IBAN"))
        elif key in ("BIC", "BICFI", "AnyBIC") and not (isinstance(value, str) and bic.is_valid(value)):
            issues.append((path, "is no BIC"))
        elif key == "LEI" and not (isinstance(value, str) and lei.is_valid(value)):
            issues.append((path, "is no LEI"))
        elif key in ("Ccy", "currency", "@Ccy") and value not in CURRENCIES:
            issues.append((path, "is not a currency of ISO 4217"))
        elif key in ("IntrBkSttlmDt", "ReqdExctnDt") and isinstance(value, str) and not _is_date(value):
            issues.append((path, "is not a date"))
        elif key in ("EndToEndId", "InstrId", "TxId") and not (isinstance(value, str) and _TEXT35.fullmatch(value)):
            issues.append((path, "is a text of 1 to 35 characters"))
        elif isinstance(value, Mapping) and (money := _money(value)):
            issues += [(path, text) for text in _amount_issues(*money)]
    return issues


def _is_date(value: str) -> bool:
    try:
        return bool(date.fromisoformat(value))
    except ValueError:
        return False


def _money(value: Mapping[str, Any]) -> tuple[Any, Any] | None:
    keys = {str(k).lstrip("@#").lower(): v for k, v in value.items()}
    currency = keys.get("currency", keys.get("ccy"))
    number = keys.get("amount", keys.get("text", keys.get("value", keys.get("$"))))
    return (number, currency) if ("currency" in keys or "ccy" in keys) else (number, None) if "amount" in keys and len(
        keys) == 1 else None


def _amount_issues(number: Any, currency: Any) -> list[str]:
    try:
        value = amount(number)
    except ValueError:
        return ["has no amount"]
    if currency is None:
        return ["has no currency"]
    digits = -int(exponent) if isinstance(
        exponent := value.normalize().as_tuple().exponent, int) and exponent < 0 else 0
    issues = ["is not positive"] if value <= 0 else []
    if isinstance(currency, str) and currency in CURRENCIES and digits > minor_digits(currency):
        issues.append(f"has {digits} decimals; {currency} has {minor_digits(currency)}")
    return issues + (["has more than 18 digits"] if len(value.as_tuple().digits) > 18 else [])


def _sums(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    header = _group(message)
    found = [v for _, k, v in _walk(message) if k == "CdtTrfTxInf"]
    transactions = [t for f in found for t in (f if isinstance(f, list) else [f]) if isinstance(t, Mapping)]
    if not transactions:
        return []
    issues = []
    if str(header.get("NbOfTxs")) != str(len(transactions)):
        issues.append(("NbOfTxs", f"is {header.get('NbOfTxs')}, but there are {len(transactions)} transactions"))
    amounts = []
    for transaction in transactions:
        value = transaction.get("IntrBkSttlmAmt", transaction.get("InstdAmt", transaction.get("Amt")))
        money = _money(value) if isinstance(value, Mapping) else None
        try:
            amounts.append(amount(money[0] if money else value))
        except ValueError:
            return issues
    total = sum(amounts, Decimal(0))
    for name in ("CtrlSum", "TtlIntrBkSttlmAmt"):
        given = header.get(name)
        if given is None:
            continue
        try:
            stated = amount((_money(given) or (None,))[0] if isinstance(given, Mapping) else given)
        except ValueError:
            continue
        if stated != total:
            issues.append((name, f"is {stated:f}, but the transactions add up to {total:f}"))
    return issues


def _walk(message: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    stack: list[tuple[str, str, Any]] = [("", "", message)]
    while stack:
        path, key, value = stack.pop()
        if key:
            yield path, key, value
        if isinstance(value, Mapping):
            stack += [(f"{path}.{k}" if path else str(k), str(k), v) for k, v in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", "[]" if not isinstance(v, Mapping) else "item", v) for i, v in enumerate(value)]
