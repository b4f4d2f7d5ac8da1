"""UCPVerifier: carts and checkouts of the Universal Commerce Protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from qwed_new import strict_json
from qwed_new.money import CURRENCIES, amount, minor_digits
from qwed_new.verdict import Status, Verdict

ENGINE = "commerce"
MAX_TEXT = 2_000_000
STATES = ("incomplete", "requires_escalation", "ready_for_complete", "complete_in_progress", "completed", "canceled")
_ADDED = ("tax", "shipping", "fulfillment", "fee", "fees", "tip", "gift_wrap", "duty", "surcharge", "handling")
_TAKEN = ("discount", "items_discount", "refund", "store_credit", "gift_card", "coupon")
_PRICES = ("unit_price", "price", "unitPrice")
_QUANTITIES = ("quantity", "qty")
# Names of numbers that are not charged.
_NOT_CHARGED = re.compile(
    r"(?:^|_)(?:id|ids|sku|gtin|ean|upc|version|count|number|rate|percent|percentage|code|zip|year|month|day|date|time"
    r"|timestamp|at|in|ttl|weight|height|width|length|size|points|revision|index|position|sequence|phone|age|score"
    r"|rating|lat|lng|latitude|longitude)$"
    r"|^(?:original|list|regular|compare_at|msrp)",
    re.I,
)
_PARTS = ("item", "line_items", "items", "cart", "totals", "grand_total")
_CURRENCY = re.compile(r"currency|_cur$", re.I)
_CHARGE = re.compile(r"(?:fee|charge|tax|surcharge|discount|credit|tip|duty|cost)s?$")
_RESTATED = re.compile(r"total|amount|due|paid|payment|balance|price", re.I)


class UCPVerifier:
    """Exact decimals: line totals, subtotal, tax, shipping, discounts and total must add up to the minor unit of the
    currency.

    strict_mode False lets a cart pass whose state is not given; sums are always exact.
    """

    def __init__(self, strict_mode: bool = True) -> None:
        self.strict_mode = strict_mode

    def verify_checkout(self, checkout: Mapping[str, Any] | str) -> Verdict:
        """Judge a checkout: its sums, its state, its structure; the verdict has guards, error and issues."""
        return self._verify(checkout, state=True)

    def verify_cart(self, cart_json: Mapping[str, Any] | str) -> Verdict:
        """Judge a cart, as an object or JSON; a state is not needed."""
        return self._verify(cart_json, state=False)

    verify_transaction = verify_cart

    def verify_totals_only(self, checkout: Mapping[str, Any] | str) -> Verdict:
        """Judge the sums alone."""
        return self._verify(checkout, state=False)

    def _verify(self, given: Mapping[str, Any] | str, state: bool) -> Verdict:
        try:
            cart = _read(given)
        except ValueError as error:
            return Verdict(
                Status.ERROR, ENGINE, f"the cart is not readable: {error}", error=str(error), issues=[str(error)],
                guards=[])
        evidence: dict[str, Any] = {"currency": cart.get("currency")}
        try:
            structure, (sums, undecided) = _structure(cart), _sums(cart, evidence)
        except ValueError as error:
            return Verdict(Status.ERROR, ENGINE, str(error), evidence, error=str(error), issues=[str(error)], guards=[])
        states = _state(cart, required=state and self.strict_mode)
        guards = [
            {"guard_name": name, "verified": not found, "error": found[0] if found else None}
            for name, found in (("Money Guard", sums), ("State Guard", states), ("Structure Guard", structure))
        ]
        issues = [*structure, *sums, *states]
        if issues:
            return Verdict(
                Status.ERROR, ENGINE, "; ".join(issues[:10]), evidence, error=issues[0], issues=issues, guards=guards)
        if undecided:
            return Verdict(Status.INCONCLUSIVE, ENGINE, undecided, evidence, error=undecided, issues=[], guards=guards)
        return Verdict(Status.VERIFIED, ENGINE, "all sums add up", evidence, error=None, issues=[], guards=guards)


def _read(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str | bytes):
        if len(given) > MAX_TEXT:
            raise ValueError(f"more than {MAX_TEXT} characters")
        try:
            given = strict_json.loads(given, parse_float=Decimal)
        except ValueError as error:
            raise ValueError(f"no JSON: {error}") from None
    if not isinstance(given, Mapping):
        raise ValueError("not an object")
    return given


def _structure(cart: Mapping[str, Any]) -> list[str]:
    issues = []
    currency = cart.get("currency")
    if currency is not None and not (isinstance(currency, str) and currency in CURRENCIES):
        issues.append(f"currency {currency!r} is not one of ISO 4217")
    for name in ("line_items", "items", "totals", "messages"):
        if name in cart and not isinstance(cart[name], list | Mapping):
            issues.append(f"{name} is not a list")
    if isinstance(cart.get("items"), Mapping) or isinstance(cart.get("line_items"), Mapping):
        issues.append("items are a list")
    lists = [n for n in ("line_items", "items", "cart") if isinstance(cart.get(n), list)]
    if len(lists) > 1:
        issues.append(f"items are listed twice: {' and '.join(lists)}")
    for names in (("total", "grand_total"), _PRICES, _QUANTITIES):
        for place, entry in (("the cart", cart),
            *((f"item {i + 1}", e) for i, e in enumerate(_items(cart)) if isinstance(e, Mapping))):
            given = {str(entry[n]) for n in names if entry.get(n) is not None}
            if len(given) > 1:
                issues.append(f"{place} has two values for one thing: {', '.join(names)}")
    return issues + _currencies(cart)


def _currencies(cart: Mapping[str, Any]) -> list[str]:
    """Currencies that are not the cart's: of items, prices and signs in amounts."""
    found: set[str] = set()
    stack: list[Any] = [cart]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            found.update(
                v for k, v in value.items() if isinstance(v, str) and v in CURRENCIES and _CURRENCY.search(str(k)))
            if isinstance(code := value.get("currency"), str):
                found.add(code)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, str) and re.fullmatch(r"[$€£¥₹]\s?[\d.,]+|[\d.,]+\s?[$€£¥₹]", value.strip()):
            found.update(c for c in value if c in "$€£¥₹")
    codes = {c for c in found if len(c) > 1}
    signs = found - codes
    fits = {
        "$": {"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "TWD", "BBD", "BSD"},
        "€": {"EUR"},
        "£": {"GBP"},
        "¥": {"JPY", "CNY"},
        "₹": {"INR"},
    }
    if len(codes) > 1 or len(signs) > 1 or any(codes and not codes <= fits[s] for s in signs):
        return [f"there are several currencies: {', '.join(sorted(found))}"]
    return []


def _state(cart: Mapping[str, Any], required: bool) -> list[str]:
    state = cart.get("status")
    if state is None:
        return ["status is missing"] if required else []
    if state not in STATES:
        return [f"status {state!r} is not one of {', '.join(STATES)}"]
    if state == "completed" and isinstance(cart.get("order"), Mapping) and not cart["order"].get("id"):
        return ["a completed checkout has an order id"]
    messages = cart.get("messages")
    if state in ("ready_for_complete", "complete_in_progress", "completed") and isinstance(messages, list) and any(
        isinstance(m, Mapping) and m.get("type") == "error" for m in messages
    ):
        return [f"status is {state}, but there are errors"]
    return []


def _items(cart: Mapping[str, Any]) -> Sequence[Any]:
    items = cart.get("line_items", cart.get("items", cart.get("cart", ())))
    return items if isinstance(items, list) else ()


def _first(item: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((item[n] for n in names if item.get(n) is not None), None)


def _line(item: Any, place: str, quantum: Decimal) -> tuple[Decimal | None, list[str]]:
    if not isinstance(item, Mapping):
        return None, [f"{place} is not an object"]
    price, quantity = _first(item, _PRICES), _first(item, _QUANTITIES)
    if price is None and isinstance(item.get("item"), Mapping):
        price = _first(item["item"], _PRICES)
    if isinstance(price, Mapping):
        price = price.get("amount", price.get("value"))
    stated = {k: v for k, v in _totals(item).items() if k in ("total", "subtotal", "line_total", "amount")}
    if price is None:
        total = stated.get("subtotal", stated.get("total", stated.get("line_total")))
        return total, [] if total is not None else [f"{place} has no price"]
    unit, count = amount(price), amount(1 if quantity is None else quantity)
    issues = [f"{place} has a negative price"] if unit < 0 else []
    if count <= 0 or count != count.to_integral_value():
        issues.append(f"{place} has the quantity {count}")
    computed = unit * count
    named = _totals(item)
    discount = abs(named.get("discount", Decimal(0)))
    if added := sorted(k for k in _ADDED if named.get(k)):
        issues.append(f"{place} has {', '.join(added)} of its own, which is not added up here")
    for name, value in stated.items():
        if value not in ((computed, computed - discount) if name != "subtotal" else (computed,)):
            issues.append(f"{place}: {name} is {value:f}, but {count} × {unit:f} is {computed:f}")
    return computed - discount, issues


def _totals(cart: Mapping[str, Any]) -> dict[str, Decimal]:
    """The named amounts: from a list of {type, amount}, an object, or fields of the cart itself."""
    found: dict[str, Decimal] = {}
    totals = cart.get("totals")
    if isinstance(totals, list):
        for entry in totals:
            if isinstance(entry, Mapping) and "type" in entry and "amount" in entry:
                kind = str(entry["type"]).lower()
                if kind in ("total", "subtotal") and kind in found:
                    raise ValueError(f"totals has two entries of type {kind}")
                found[kind] = found.get(kind, Decimal(0)) + amount(entry["amount"])
            else:
                raise ValueError("an entry of totals has no type or amount")
    elif isinstance(totals, Mapping):
        found.update({str(k).lower(): amount(v) for k, v in totals.items()})
    for name in ("subtotal", "total", "grand_total", "line_total", *_ADDED, *_TAKEN):
        value = cart.get(name)
        if isinstance(value, Mapping):
            value = value.get("amount", value.get("value"))
        if value is None or isinstance(value, list):
            continue
        name = "total" if name == "grand_total" else name
        if name in found and found[name] != amount(value):
            raise ValueError(f"{name} is given twice, as {found[name]:f} and {value}")
        found[name] = amount(value)
    for key, value in cart.items():
        name = _listed(str(key), value)
        if name and not {name, str(key)} & set(found) and (parts := _charged(name, value)):
            found[name] = parts
    negative = sorted(k for k, v in found.items() if v < 0 and k in (*_ADDED, "subtotal"))
    if negative:
        raise ValueError(f"{', '.join(negative)} is negative")
    return found


def _charged(kind: str, value: Any) -> Decimal:
    """Return the amount that a field charges, or 0 if it is not an amount. An amount is a number, a text with decimals
    or a sign, an object with an amount, or a list of these."""
    if isinstance(value, Mapping):
        inside = value
        value = _first(value, ("applied", "amount", "value", *_PRICES))
        if value is None:  # {"eco_fee": "1.00"}
            return sum((abs(_charged(k, v)) for k, v in inside.items() if _CHARGE.search(str(k).lower())), Decimal(0))
    if isinstance(value, list):
        return sum((abs(_charged(kind, v)) for v in value if isinstance(v, Mapping)), Decimal(0))
    if isinstance(value, str) and not _CHARGE.search(kind) and not re.search(
        r"^-?\s*[$€£¥₹]|\d\.\d\d|[$€£¥₹]$", value.strip()):
        return Decimal(0)
    if value is None or isinstance(value, bool | Mapping):
        return Decimal(0)
    try:
        return amount(value)
    except ValueError:
        return Decimal(0)


def _singular(kind: str) -> set[str]:
    return {kind, kind.removesuffix("s"), kind.removesuffix("es")}


def _listed(key: str, value: Any) -> str:
    """Return the charge whose parts a list such as `fees` has, or ""."""
    if not isinstance(value, list):
        return ""
    return next((n for n in sorted(_singular(key.lower())) if n in (*_ADDED, *_TAKEN)), "")


def _has_parts(kind: str, value: Any, totals: Mapping[str, Decimal]) -> bool:
    """Report whether a field lists the parts of an amount of the totals, as `discounts` does."""
    return isinstance(value, list | Mapping) and bool(_singular(kind) & set(totals))


def _wrong_parts(cart: Mapping[str, Any], totals: Mapping[str, Decimal]) -> list[str]:
    """Return the lists whose parts do not add up to their amount of the totals."""
    issues = []
    for key, value in cart.items():
        kind = str(key).lower()
        if kind in ("totals", *_PARTS) or not _has_parts(kind, value, totals):
            continue
        named = min(_singular(kind) & set(totals))
        parts = _charged(named, value)
        if not parts and isinstance(value, Mapping):  # {"state": "1.00", "city": "0.60"}
            parts = sum((abs(_charged("tax", v)) for v in value.values()), Decimal(0))
        if not parts:
            continue
        group = _TAKEN if named in _TAKEN else _ADDED
        whole = sum((abs(v) for n, v in totals.items() if n in group), Decimal(0))
        if parts not in (abs(totals[named]), whole):
            issues.append(f"{key} add up to {parts:f}, but {named} is {totals[named]:f}")
    return issues


def _left_out(entry: Mapping[str, Any], totals: Mapping[str, Decimal], total: Decimal | None) -> list[str]:
    """Return the fields of a cart or an item with an amount that no sum contains and that does not restate the
    total."""
    found = []
    for name, value in entry.items():
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
        if name in totals or name in (*_PRICES, *_QUANTITIES, *_PARTS) or _NOT_CHARGED.search(kind):
            continue
        if _has_parts(kind, value, totals):
            continue
        charged = _charged(kind, value)
        if charged and not (_RESTATED.search(kind) and charged == total):
            found.append(str(name))
    return sorted(found)


def _sums(cart: Mapping[str, Any], evidence: dict[str, Any]) -> tuple[list[str], str]:
    """Return the amounts that do not add up, and why the sums do not decide, or ""."""
    currency = cart.get("currency")
    quantum = Decimal(1).scaleb(-minor_digits(currency if isinstance(currency, str) else ""))
    issues: list[str] = []
    lines: list[Decimal] = []
    left_out: list[str] = []
    for i, item in enumerate(_items(cart)):
        value, found = _line(item, f"item {i + 1}", quantum)
        issues += found
        if value is not None:
            lines.append(value)
        if isinstance(item, Mapping):
            left_out += [f"{name} of item {i + 1}" for name in _left_out(item, _totals(item), value)]
    totals = _totals(cart)
    issues += [
        f"{name} is null" for name in ("total", "grand_total", "subtotal") if name in cart and cart[name] is None]
    issues += _wrong_parts(cart, totals)
    evidence["totals"], evidence["lines"] = dict(totals), lines
    if isinstance(currency, str):
        issues += [f"{k} {v:f} is not an amount of {currency}" for k, v in totals.items() if v != v.quantize(quantum)]
    items_sum = sum(lines, Decimal(0))
    unknown = sorted(set(totals) - {"subtotal", "total", *_ADDED, *_TAKEN})
    unknown += sorted(
        k
        for k, v in cart.items()
        if _CHARGE.search(str(k).lower())
        and k not in (*_ADDED, *_TAKEN)
        and not _has_parts(str(k).lower(), v, totals)
    )
    subtotal = totals.get("subtotal")
    listed = any(isinstance(cart.get(n), list) for n in ("line_items", "items", "cart"))
    if (lines or listed) and subtotal is not None and subtotal != items_sum:
        issues.append(f"subtotal is {subtotal:f}, but the items add up to {items_sum:f}")
    base = subtotal if subtotal is not None else items_sum if lines else None
    total = totals.get("total")
    left_out += _left_out(cart, totals, total)
    undecided = f"amounts that no sum contains: {', '.join(left_out[:10])}" if left_out else ""
    if total is None or base is None:
        nothing = "" if lines and subtotal is not None else "the cart names no total that could be checked"
        return issues, nothing or undecided
    added = sum((totals[k] for k in _ADDED if k in totals), Decimal(0))
    taken = sum((abs(totals[k]) for k in _TAKEN if k in totals), Decimal(0))
    computed = base + added - taken
    evidence["computed_total"] = computed
    if unknown:
        issues.append(f"totals of unknown type: {', '.join(unknown)}")
    elif total != computed.quantize(quantum):
        issues.append(f"total is {total:f}, but {base:f} + {added:f} − {taken:f} is {computed:f}")
    if total < 0:
        issues.append("total is negative")
    rate = cart.get("tax_rate")
    if rate is not None and "tax" not in totals and amount(rate) != 0:
        issues.append("there is a tax_rate, but no tax")
    if rate is not None and "tax" in totals:
        tax = ((base - taken) * amount(rate)).quantize(quantum, "ROUND_HALF_UP")
        gross = (base * amount(rate)).quantize(quantum, "ROUND_HALF_UP")
        if totals["tax"] not in (tax, gross):
            issues.append(f"tax is {totals['tax']:f}, but the rate makes {tax:f}")
    return issues, undecided
